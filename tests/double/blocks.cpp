/* The threads of a block where they wait for each other: each runs on a fibre, which stops at a barrier.
 *
 * A fibre is kept for later blocks, and changes by _longjmp: swapcontext makes a system call for the signal mask each
 * time, and every block, with barriers or without, begins on a fibre. */
#undef _FORTIFY_SOURCE /* its longjmp refuses to leave a stack for another */
#include "kernel_on_cpu.h"
#include "machine.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <utility>

#if defined __SANITIZE_ADDRESS__
#include <dlfcn.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

static constexpr size_t STACK = 256 << 10, GUARD = 4 << 10; /* bytes of a fibre's stack, and below it */

/* What runs on a stack of its own, or the caller, which has the thread's. */
struct place {
    jmp_buf left;                 /* where it goes on */
    const void *bottom = nullptr; /* of the stack; the caller's is found out when it is left */
    size_t size = 0;
    void *account = nullptr; /* the sanitizer's */
};

struct fibre : place {
    unsigned char *stack = nullptr;
    ucontext_t beginning = {};
    bool begun = false, ended = false; /* its first block; its thread of this block */
    uint3 thread = {};

    fibre();
    ~fibre();
    fibre(const fibre &) = delete;
};

/* The fibres of the block that is running. */
struct block_fibres {
    const kernel_call &call;
    std::vector<std::unique_ptr<fibre>> fibres;
    place caller;
    unsigned current = 0;
};

/* The innermost: a kernel may run inside another's wait_for_prerequisites. */
static thread_local block_fibres *running;

/* Fibres that no block uses now. */
static thread_local std::vector<std::unique_ptr<fibre>> spare;

[[noreturn]] static void
refuse(const char *what)
{
    std::fprintf(stderr, "vecadd double: %s\n", what);
    std::abort();
}

/* In `own`, once it runs again or for the first time; a fibre learns the stack of the caller that it came from. */
static void
arrive(place &own, place *caller)
{
#if defined __SANITIZE_ADDRESS__
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(own.account, &bottom, &size);
    if (caller) {
        caller->bottom = bottom;
        caller->size = size;
    }
#else
    (void)own, (void)caller;
#endif
}

/* AddressSanitizer's own _longjmp would take the stack that is left for unwound: `change` tells it of the other. */
static void
jump(place &next)
{
#if defined __SANITIZE_ADDRESS__
    static const auto unwatched =
        reinterpret_cast<void (*)(jmp_buf, int)>(dlsym(dlopen("libc.so.6", RTLD_LAZY), "_longjmp"));
    unwatched(next.left, 1);
#else
    _longjmp(next.left, 1);
#endif
}

static uint3
thread_of(unsigned number)
{
    return {number % blockDim.x, number / blockDim.x % blockDim.y, number / blockDim.x / blockDim.y};
}

/* Leaves `own` for `next`, until something changes back. `beginning` is that of a fibre that has not begun. */
static void
change(place &own, place &next, const ucontext_t *beginning = nullptr)
{
    if (_setjmp(own.left) != 0)
        return;
#if defined __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&own.account, next.bottom, next.size);
#elif defined __SANITIZE_THREAD__
    own.account = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(next.account, 0);
#endif
    if (beginning)
        setcontext(beginning);
    jump(next);
}

/* A fibre: one thread of a block after the other. Finds what it runs in `running`: makecontext passes int arguments
 * alone. */
static void
begin()
{
    fibre &own = *running->fibres[running->current];
    for (;;) {
        block_fibres &block = *running;
        arrive(own, &block.caller);
        threadIdx = thread_of(block.current);
        block.call.run_thread();
        own.ended = true;
        change(own, block.caller);
    }
}

fibre::fibre()
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *const mapped = mmap(nullptr, GUARD + STACK, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (mapped == MAP_FAILED || mprotect(mapped, GUARD, PROT_NONE) != 0)
        refuse("there is no memory for the stack of a block's thread");
    stack = static_cast<unsigned char *>(mapped);
    bottom = stack + GUARD;
    size = STACK;
#if defined __SANITIZE_THREAD__
    account = __tsan_create_fiber(0);
#endif
    getcontext(&beginning);
    beginning.uc_stack.ss_sp = stack + GUARD;
    beginning.uc_stack.ss_size = STACK;
    beginning.uc_link = nullptr;
    makecontext(&beginning, begin, 0);
}

fibre::~fibre()
{
#if defined __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(stack + GUARD, STACK);
#elif defined __SANITIZE_THREAD__
    __tsan_destroy_fiber(account);
#endif
    munmap(stack, GUARD + STACK);
}

static std::unique_ptr<fibre>
take_fibre()
{
    if (spare.empty())
        return std::make_unique<fibre>();
    std::unique_ptr<fibre> taken = std::move(spare.back());
    spare.pop_back();
    taken->ended = false;
    return taken;
}

/* Runs a fibre from its beginning or from its barrier to the next, or to the end of its thread. */
static void
resume(block_fibres &block, unsigned number)
{
    fibre &next = *block.fibres[number];
    const bool begun = std::exchange(next.begun, true);
    block.current = number;
    change(block.caller, next, begun ? nullptr : &next.beginning);
    arrive(block.caller, nullptr);
}

void
__syncthreads()
{
    if (!running)
        refuse("a thread waits at a barrier that thread 0 of its block did not come to");
    block_fibres &block = *running;
    fibre &own = *block.fibres[block.current];
    own.thread = threadIdx;
    change(own, block.caller);
    arrive(own, &block.caller);
    threadIdx = own.thread;
}

/* Runs the fibres from `first` on, each to its next barrier or its end. Returns how many have ended. */
static unsigned
turn(block_fibres &block, unsigned first)
{
    unsigned ended = 0;
    for (unsigned number = first; number < block.fibres.size(); ++number) {
        resume(block, number);
        ended += block.fibres[number]->ended;
    }
    if (ended != 0 && ended != block.fibres.size())
        refuse("some threads of a block wait at a barrier that others do not come to");
    return ended;
}

/* Runs thread 0, and all threads of the block where that comes to a barrier; returns whether it did. Thread 0 is a
 * fibre in every block, so that it can be left at a barrier. */
static bool
threads_wait(const kernel_call &call)
{
    block_fibres block = {call, {}, {}};
    block_fibres *const outer = running;
    running = &block;
    block.fibres.push_back(take_fibre());
    resume(block, 0);
    const bool wait = !block.fibres[0]->ended;
    if (wait) {
        while (block.fibres.size() < blockDim.x * blockDim.y * blockDim.z)
            block.fibres.push_back(take_fibre());
        turn(block, 1);
        while (turn(block, 0) == 0)
            ;
    }
    running = outer;
    std::move(block.fibres.begin(), block.fibres.end(), std::back_inserter(spare));
    return wait;
}

/* Where thread 0 comes to no barrier, no thread does: the others run one after the other, each to its end. */
void
run_block(const kernel_call &call)
{
    if (threads_wait(call))
        return;
    unsigned next = 1; /* thread 0 has run */
    for (threadIdx.z = 0; threadIdx.z < blockDim.z; ++threadIdx.z)
        for (threadIdx.y = 0; threadIdx.y < blockDim.y; ++threadIdx.y, next = 0)
            for (threadIdx.x = next; threadIdx.x < blockDim.x; ++threadIdx.x)
                call.run_thread();
}
