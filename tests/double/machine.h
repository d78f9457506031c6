/* The double's inside: one struct that is the whole machine, and what its files offer each other.
 *
 * machine.cpp   the entry of every call: counts, failures, forks, sticky errors
 * queue.cpp     streams as queues of work, the order in which it runs, and what waits while a kernel fills the device
 * graphs.cpp    streams that capture, and what becomes of what they captured
 * memory.cpp    allocations and who may touch them      pools.cpp  stream-ordered memory
 * blocks.cpp    the threads of a block               l2.cpp    what kernels ask the L2 to keep
 * contexts.cpp  the driver's contexts, and which one is a thread's current
 * devices.cpp, errors.cpp, streams.cpp, events.cpp, copies.cpp, pointers.cpp, launch.cpp, tensor_map.cpp,
 * entry_points.cpp: the CUDA calls
 * allocations.cpp, clock.cpp: the C library's calls that a test decides
 * control.cpp   the tests' interface (double.h) */
#ifndef VECADD_MACHINE_H
#define VECADD_MACHINE_H

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

enum { MAX_DEVICES = 8, MULTIPROCESSORS = 4, L2_BYTES = 1 << 20 };
/* A multiprocessor's, and a block's, those of compute capability 9.0. */
enum {
    MAX_BLOCKS_A_MULTIPROCESSOR = 32,
    MAX_THREADS_A_MULTIPROCESSOR = 2048,
    MAX_THREADS_A_BLOCK = 1024,
    REGISTERS_A_MULTIPROCESSOR = 64 << 10,
    SHARED_A_MULTIPROCESSOR = 228 << 10,
    RESERVED_SHARED = 1 << 10 /* of each block, beside what it asks for */
};
constexpr size_t DEVICE_BYTES = size_t(8) << 30, PINNED_BYTES = size_t(4) << 30;

/* A programmatic launch may begin before the kernel ahead of it in its stream has ended. */
enum class work_kind { other, kernel, programmatic };

/* A piece of queued work. It may run once everything it comes after is done. A programmatic kernel may also run while
 * the kernels in `prerequisites` have not: where it waits for them they are run, and where it does not they are left.
 * Every kernel is taken to have triggered at once, since code may not rely on a later trigger. */
struct work {
    std::vector<std::shared_ptr<work>> after;
    std::vector<std::shared_ptr<work>> prerequisites;
    std::function<void()> run;
    work_kind kind = work_kind::other;
    bool done = false;
    bool ready = false; /* may run, as of the last look */
    std::chrono::steady_clock::time_point finished;

    /* It is done, and so is the work that it overtook. */
    bool settled() const;
};
using work_ptr = std::shared_ptr<work>;

/* What a graph runs, in the order of the capture; the numbers are of nodes before. */
struct graph_node {
    std::function<void()> run;
    work_kind kind;
    std::vector<size_t> after, prerequisites;
};

struct graph {
    std::vector<graph_node> nodes;
};

/* An instantiated graph. Its launches are in the order in which they were made, whatever their streams. */
struct graph_exec {
    graph made_of;
    work_ptr last;
    int launching = 0; /* threads, of which there may be one at a time */
};

/* What a stream captures into, shared by those that joined it by events. */
struct capture {
    graph captured;
    cudaStreamCaptureMode mode;
    std::thread::id thread;
    std::weak_ptr<struct stream> origin;
    bool invalid = false;
};
using capture_ptr = std::shared_ptr<capture>;

/* A context of the driver's, known by its handle. */
struct context {
    int device;
    bool active;          /* a primary one is not until something needs it, and is never destroyed */
    uintptr_t before = 0; /* another one: what was current when it was made */
};

struct stream {
    int device;
    uintptr_t context = 0; /* that it was made in; 0: a default stream, of whichever is current */
    bool blocking;         /* ordered with the legacy default stream, in both directions */
    bool legacy;
    bool foreign;           /* another library's */
    bool destroyed = false; /* the handle is gone; what was queued goes on */
    work_ptr tail;
    capture_ptr capturing;
    std::vector<size_t> captured_tail; /* the nodes that the next captured one comes after */
};
using stream_ptr = std::shared_ptr<stream>;

struct event {
    uintptr_t context;
    bool timing;
    work_ptr recorded;
    capture_ptr captured; /* recorded in a stream that captures: a point in the graph alone */
    std::vector<size_t> captured_after;
};

/* Pages of the process, without access for the host where they are a device's. Their addresses are never used again. */
struct mapping {
    char *base;
    size_t bytes;

    explicit mapping(size_t bytes, bool device);
    ~mapping();
    void allow(bool access) const;
};

enum class memory_kind { device, foreign, managed, pinned, registered };

struct block {
    char *start;
    size_t bytes;
    memory_kind kind;
    int device;
    uintptr_t context = 0;          /* whose end is the memory's; 0: none's, as of a pool's memory */
    std::shared_ptr<mapping> pages; /* none where registered */
    struct pool *pool = nullptr;    /* where stream-ordered */
    bool allocated = true;          /* its allocation has happened in stream order */
    bool released = false;          /* cudaFreeAsync was called */
    bool freed = false;             /* its release has happened in stream order */
    bool of_graph = false;          /* allocated in a capture: there between two nodes of each launch */
    unsigned kernels = 0; /* managed: that are queued and use it; the host has no access while there are any */

    bool
    on_device() const
    {
        return kind == memory_kind::device || kind == memory_kind::foreign;
    }
};
using block_ptr = std::shared_ptr<block>;

struct pool {
    int device;
    unsigned access = 0; /* bit d: device d, another one, may use its memory */
    uint64_t threshold = 0;
    uint64_t used = 0, used_high = 0;         /* bytes allocated and not freed in stream order */
    uint64_t reserved = 0, reserved_high = 0; /* used, and kept for later allocations */
    int reuse[3] = {1, 1, 1};                 /* cudaMemPoolReuse...: the double always gives fresh memory */
    bool destroyed = false;
};

struct failure {
    std::string call;
    int countdown;
    cudaError_t status;
    bool forever;
};

struct machine {
    std::mutex mutex;
    std::atomic<pid_t> owner{0}; /* the process that initialised CUDA */

    int devices;
    std::atomic<int> driver;
    std::mt19937 random;
    std::vector<failure> failures;
    std::map<std::string, long, std::less<>> calls;
    std::map<std::string, std::chrono::microseconds, std::less<>> delays;
    std::atomic<bool> delayed{false}; /* there are some */
    long faults = 0;
    cudaError_t sticky = cudaSuccess;
    cudaError_t earlier = cudaSuccess; /* what calls that wait or give back report of work before them */
    int threads_with_errors = 0;       /* that cudaGetLastError would tell of */
    unsigned era = 0;                  /* one more each time that the tests forget all threads' errors */

    std::vector<work_ptr> pending;           /* in the order of the calls */
    work_ptr running;                        /* the kernel or copy that runs now */
    const unsigned *blockade_open = nullptr; /* of the kernel that keeps every multiprocessor full */
    unsigned *blockade_expired = nullptr;
    stream_ptr legacy[MAX_DEVICES];
    std::vector<stream_ptr> streams;        /* all with a tail, the legacy ones and the destroyed ones too */
    uintptr_t next_handle = 0x5ca1ab1e0000; /* handles are never used again: a stale one stays stale */
    std::map<uintptr_t, context> contexts;
    uintptr_t primary[MAX_DEVICES] = {};
    std::map<uintptr_t, stream_ptr> stream_handles;
    std::map<uintptr_t, std::shared_ptr<event>> event_handles;
    std::map<uintptr_t, std::unique_ptr<pool>> pool_handles;
    std::vector<capture_ptr> captures; /* that were not ended, whatever has become of their streams */
    std::map<uintptr_t, std::unique_ptr<graph>> graph_handles;
    std::map<uintptr_t, std::unique_ptr<graph_exec>> graph_exec_handles;
    std::vector<std::unique_ptr<pool>> retired_pools; /* destroyed, perhaps with allocations */
    pool default_pools[MAX_DEVICES];

    std::map<uintptr_t, block_ptr> blocks; /* by address */
    size_t device_bytes[MAX_DEVICES] = {}; /* allocated or reserved by pools */
    size_t capacity = DEVICE_BYTES;        /* of each device */
    size_t pinned_bytes = 0;
    size_t persisting[MAX_DEVICES] = {};            /* bytes of the L2 that are set aside */
    std::unordered_map<uintptr_t, bool> evict_last; /* by line of the L2: loaded so, and not demoted since */
    unsigned peers[MAX_DEVICES] = {};               /* bit e of entry d: device d may use plain memory of device e */
    bool peer_access = true;                        /* any device could use another's memory */
    bool memory_pools = true;                       /* devices have stream-ordered memory */
    int flipped_copies = 0;    /* copies between devices from now on that arrive with one bit wrong */
    unsigned open_devices = 0; /* bit d: device d's memory is accessible, because work is running */

    machine();
    unsigned
    below(unsigned n)
    {
        return std::uniform_int_distribution<unsigned>(0, n - 1)(random);
    }
};

/* Never destroyed: calls come from exit handlers too. */
machine &the_machine();
void machine_shape(machine &m); /* devices and driver as the environment says */

/* machine.cpp. A CUDA call: under the lock, after what may keep it from happening. */
bool forked_child();
void delay(machine &m, const char *name);      /* without the lock: other threads' calls go on */
cudaError_t refuse_in_child(const char *name); /* on stderr: no CUDA call is allowed there */
cudaError_t call_enter(machine &m, const char *name, bool needs_driver);
cudaError_t call_leave(machine &m, const char *name, cudaError_t error);
cudaError_t take_last_error(machine &m, bool clear);
bool is_sticky(cudaError_t error);
bool is_driver_call(const char *name); /* one of the driver's, cuCtxSetCurrent, and not of the runtime's */
void fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A fault after which the machine goes on: CUDA tells the caller, or breaks a promise now and then. */
void misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

void wait_for_room(const char *name); /* as a call does while a queue is full; without the machine's lock */
void fill_queues(bool full);
int waiting_for_room();

/* contexts.cpp. Binds the current device's primary context to a thread that has none, as most calls do. */
void bind_context(machine &m, const char *name);

template <typename Body>
cudaError_t
cuda_call(const char *name, Body body)
{
    if (forked_child())
        return refuse_in_child(name);
    wait_for_room(name);
    machine &m = the_machine();
    delay(m, name);
    const std::lock_guard<std::mutex> lock(m.mutex);
    cudaError_t error = call_enter(m, name, true);
    if (error == cudaSuccess) {
        bind_context(m, name);
        error = body(m);
    }
    return call_leave(m, name, error);
}

/* contexts.cpp */
int current_device();
uintptr_t current_context();
void make_current(machine &m, int device); /* its primary context, made where there is none */

/* queue.cpp */
stream_ptr stream_of(machine &m, cudaStream_t handle); /* ends the process where there is no such stream */
stream_ptr stream_new(machine &m, int device, bool blocking);
work_ptr enqueue(machine &m, const stream_ptr &stream, std::function<void()> run, const work_ptr &also = nullptr,
                 work_kind kind = work_kind::other);
void add_pending(machine &m, const work_ptr &queued); /* after what it comes after */
void come_after(work &later, const work_ptr &earlier);
void finish(machine &m, work_ptr target); /* runs it, what it comes after and what it began ahead of */
void finish_prerequisites(machine &m);    /* of the kernel that runs now */
void finish_device(machine &m, int device);
bool finished_by_now(machine &m, const work_ptr &target); /* a query: no, some random number of times */
template <typename Handle>
Handle
handle_new(machine &m)
{
    return reinterpret_cast<Handle>(m.next_handle += 16);
}

/* graphs.cpp */
cudaError_t usable_stream(machine &m, cudaStream_t handle, stream_ptr &stream); /* for work to be queued on */
cudaError_t waitable_stream(machine &m, cudaStream_t handle, stream_ptr &stream);
void capture_node(stream &stream, std::function<void()> run, work_kind kind);
cudaError_t capture_invalidate(capture &broken, cudaError_t why);
cudaError_t forbidden_in_capture(machine &m); /* a call that could wait, by the modes of the captures and the thread */
cudaError_t forbidden_beside_captures(machine &m, int device); /* one that waits for every stream, in any mode */

/* memory.cpp */
block_ptr block_at(machine &m, const void *address); /* null: memory that CUDA does not know */
block_ptr block_new(machine &m, size_t bytes, memory_kind kind, int device);
void block_erase(machine &m, const block_ptr &block);
void block_release(machine &m, const block_ptr &block);      /* and gives its bytes back to the device or the pool */
bool may_touch(machine &m, const void *address, int device); /* by work that runs now on this device; else a fault */
void open_memory(machine &m, int device);
void close_memory(machine &m);

/* blocks.cpp */
struct kernel_call;
void run_block(const kernel_call &call); /* its threads one after the other, each to its next barrier or its end */

/* pools.cpp */
void pool_take_back(machine &m, pool &p, size_t bytes);

/* copies.cpp */
cudaError_t copy_queue(machine &m, void *target, const void *source, size_t bytes, const stream_ptr &stream,
                       work_ptr *queued);

#endif
