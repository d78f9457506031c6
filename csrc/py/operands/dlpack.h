/* The part of DLPack's C types that vecadd uses: version 1.x of https://dmlc.github.io/dlpack/latest/c_api.html, whose
 * layout does not change within a major version, and the unversioned one before it. */
#ifndef VECADD_PY_OPERANDS_DLPACK_H
#define VECADD_PY_OPERANDS_DLPACK_H

#include <stdbool.h>
#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 1 };

enum dl_device_type { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

enum dl_type_code {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_COMPLEX = 5,
    DL_BOOL = 6,
    DL_FLOAT8_E4M3FN = 10 /* since DLPack 1.1 */
};

struct dl_device {
    int32_t type; /* enum dl_device_type */
    int32_t id;
};

struct dl_data_type {
    uint8_t code; /* enum dl_type_code */
    uint8_t bits;
    uint16_t components;
};

struct dl_tensor {
    void *data;
    struct dl_device device;
    int32_t ndim;
    struct dl_data_type dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: C order */
    uint64_t byte_offset;
};

enum { DL_READ_ONLY = 1, DL_COPIED = 2 }; /* flags */

struct dl_managed_tensor {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_managed_tensor *); /* may be NULL */
    uint64_t flags;
    struct dl_tensor tensor;
};

struct dl_unversioned_tensor {
    struct dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_unversioned_tensor *); /* may be NULL */
};

/* Names of the capsules that __dlpack__ returns, before and after a consumer took the tensor out. */
#define DL_CAPSULE                  "dltensor_versioned"
#define DL_CAPSULE_USED             "used_dltensor_versioned"
#define DL_UNVERSIONED_CAPSULE      "dltensor"
#define DL_UNVERSIONED_CAPSULE_USED "used_dltensor"

struct dl_exchange_header {
    struct {
        uint32_t major, minor;
    } version;
    struct dl_exchange_header *previous; /* an older table of the same library, or NULL */
};

/* The table that the attribute gives, a type's capsule of this name. Functions return 0, or -1 with an
 * exception set (`allocate`: with set_error called); none of them orders streams. */
#define DL_EXCHANGE_ATTRIBUTE "__dlpack_c_exchange_api__"
#define DL_EXCHANGE_CAPSULE   "dlpack_exchange_api"
enum { DL_EXCHANGE_MINOR = 3 }; /* the version of DLPack that has it */

struct dl_exchange {
    struct dl_exchange_header header;
    int (*allocate)(struct dl_tensor *like, struct dl_managed_tensor **made, void *context,
                    void (*set_error)(void *context, const char *kind, const char *message));
    int (*managed_from_object)(void *object, struct dl_managed_tensor **made);
    int (*object_from_managed)(struct dl_managed_tensor *stolen, void **object);
    int (*tensor_from_object)(void *object, struct dl_tensor *borrowed); /* may be NULL */
    int (*current_stream)(int32_t device_type, int32_t device, void **stream);
};

#endif
