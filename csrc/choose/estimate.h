/* Which route is fastest for large page-locked arrays on a machine that `vecadd tune routes` has not measured:
 * estimated at first, from the attributes of the GPU's link by the formula of document 004 (docs/ledger.md says which
 * text that is), then known from what the calls themselves took.
 *
 * Numbers in, a decision out: no clock, no CUDA call. Any thread may call these; they take no lock, and an update that
 * is lost does no harm. */
#ifndef VECADD_CHOOSE_ESTIMATE_H
#define VECADD_CHOOSE_ESTIMATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/plan.h"

/* A GPU route must take less than this share of the host's time: the host route leaves link and GPU to other work. */
#define CLEARLY 0.97

/* The host has to convert short floats; the time of all other components depends on their bytes alone. */
enum component_class { CLASS_WIDE, CLASS_HALF, CLASSES };

enum { ESTIMATE_SIZES = 12 }; /* each twice the one before, from HYBRID_MIN on */

/* How long a route takes for each MiB of an operand. */
struct route_time {
    atomic_uint ns, samples;
    atomic_uint at; /* the number of the size's call that was noted last */
};

/* All that is known of a machine; {0} is nothing. */
struct route_estimate {
    atomic_uint link; /* ns for a MiB of each operand, by the link's attributes; 0: they are not known */
    struct route_time transfer;
    struct size_estimate {
        struct route_time route[ROUTE_DEVICE];
        atomic_uint calls;
    } size[CLASSES][ESTIMATE_SIZES];
    atomic_ullong host, lost; /* ns: of all calls by the host alone; of all calls through the GPU beyond that */
    atomic_int threads;       /* of the host, which all the times are of */
    atomic_bool started;      /* a call went through the GPU, and made its buffers */
    atomic_bool trying;       /* by a thread, now: others go the best known way */
};

struct estimate_job {
    size_t bytes; /* of an operand, HYBRID_MIN at least */
    enum component_class components;
    int threads; /* of the host */
};

enum estimate_stage {
    ESTIMATE_LEARNING, /* the host adds, because its time is not known yet */
    ESTIMATE_BEHIND,   /* the host adds: no other route promises to be faster by enough */
    ESTIMATE_WAITING,  /* one does, and is tried once the trial can cost next to nothing of the time of all calls */
    ESTIMATE_TRIAL,    /* this call tries a route, to time it */
    ESTIMATE_MEASURED, /* the fastest by what calls took */
};

enum estimate_link { LINK_ASSUMED, LINK_ATTRIBUTES, LINK_MEASURED };

struct estimate_choice {
    enum route route;
    enum estimate_stage stage;
    double seconds[ROUTE_DEVICE]; /* measured or predicted, by route; 0: unknown */
    enum estimate_link link;      /* where the transfer's time is from */
    enum route otherwise;         /* while another thread tries a route */
};

/* The link's rate in theory, bytes a second in one direction; 0: it is not known. */
void estimate_set_link(struct route_estimate *estimate, double bytes_a_second);

/* What a call would do now. */
struct estimate_choice estimate_choose(const struct route_estimate *estimate, const struct estimate_job *job);

/* The choice for a call that begins, and the end of that call, which took so long. */
struct estimate_choice estimate_begin(struct route_estimate *estimate, const struct estimate_job *job);
void estimate_end(struct route_estimate *estimate, const struct estimate_job *job, const struct estimate_choice *choice,
                  long long ns);

#endif
