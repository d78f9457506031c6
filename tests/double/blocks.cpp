/* The threads of a block where they wait for each other: each is a fibre, which stops at a barrier. */
#include "kernel_on_cpu.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <deque>

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
    ucontext_t context;
    const void *bottom = nullptr; /* of the stack; the caller's is found out when it is left */
    size_t size = 0;
    void *account = nullptr; /* the sanitizer's */
};

struct fibre : place {
    unsigned char *stack = nullptr; /* nullptr: it has not begun */
    uint3 thread = {};
    bool ended = false;
};

/* The fibres of the block that is running. */
struct block_fibres {
    const std::function<void(unsigned)> &thread;
    std::deque<fibre> fibres; /* a context holds its own address, and must stay where it is */
    place caller;
    unsigned current = 0;
};

/* The innermost: a kernel may run inside another's wait_for_prerequisites. */
static thread_local block_fibres *running;

[[noreturn]] static void
refuse(const char *what)
{
    std::fprintf(stderr, "vecadd double: %s\n", what);
    std::abort();
}

/* Stacks that no fibre uses now. A thread keeps them: a test runs thousands of blocks. */
struct spare_stacks {
    std::vector<unsigned char *> free;

    ~spare_stacks()
    {
        for (unsigned char *stack : free)
            munmap(stack, GUARD + STACK);
    }
};
static thread_local spare_stacks spare;

static unsigned char *
take_stack()
{
    if (!spare.free.empty()) {
        unsigned char *const stack = spare.free.back();
        spare.free.pop_back();
        return stack;
    }
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *const stack = mmap(nullptr, GUARD + STACK, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, GUARD, PROT_NONE) != 0)
        refuse("there is no memory for the stack of a block's thread");
    return static_cast<unsigned char *>(stack);
}

/* AddressSanitizer's own swapcontext would warn that it does not know of the change, of which `change` tells it. */
static int
swap(ucontext_t *from, const ucontext_t *to)
{
#if defined __SANITIZE_ADDRESS__
    static const auto unwatched = reinterpret_cast<int (*)(ucontext_t *, const ucontext_t *)>(
        dlsym(dlopen("libc.so.6", RTLD_LAZY), "swapcontext"));
    return unwatched(from, to);
#else
    return swapcontext(from, to);
#endif
}

/* In `own`, once it runs again or for the first time; a fibre that begins learns the stack of its caller. */
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

/* Runs `next` in place of `own`, until something changes back. */
static void
change(place &own, place &next, bool for_good = false)
{
#if defined __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(for_good ? nullptr : &own.account, next.bottom, next.size);
#elif defined __SANITIZE_THREAD__
    own.account = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(next.account, 0);
#endif
    (void)for_good;
    swap(&own.context, &next.context);
    arrive(own, nullptr);
}

/* A fibre, from its beginning to its end. Finds its arguments in `running`: makecontext passes int arguments alone. */
static void
begin()
{
    block_fibres &block = *running;
    fibre &own = block.fibres[block.current];
    arrive(own, &block.caller);
    block.thread(block.current);
    own.ended = true;
    change(own, block.caller, true);
}

static void
open_fibre(fibre &next)
{
    next.stack = take_stack();
    next.bottom = next.stack + GUARD;
    next.size = STACK;
#if defined __SANITIZE_THREAD__
    next.account = __tsan_create_fiber(0);
#endif
    getcontext(&next.context);
    next.context.uc_stack.ss_sp = next.stack + GUARD;
    next.context.uc_stack.ss_size = STACK;
    next.context.uc_link = nullptr;
    makecontext(&next.context, begin, 0);
}

static void
close_fibre(fibre &ended)
{
#if defined __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(ended.stack + GUARD, STACK);
#elif defined __SANITIZE_THREAD__
    __tsan_destroy_fiber(ended.account);
#endif
    spare.free.push_back(ended.stack);
}

/* Runs a fibre from its beginning or from its barrier to the next, or to its end. */
static void
resume(block_fibres &block, unsigned number)
{
    fibre &next = block.fibres[number];
    if (!next.stack)
        open_fibre(next);
    block.current = number;
    change(block.caller, next);
    if (next.ended)
        close_fibre(next);
}

void
__syncthreads()
{
    if (!running)
        refuse("a thread waits at a barrier that thread 0 of its block did not come to");
    block_fibres &block = *running;
    fibre &own = block.fibres[block.current];
    own.thread = threadIdx;
    change(own, block.caller);
    threadIdx = own.thread;
}

/* Runs the fibres from `first` on, each to its next barrier or its end. Returns how many have ended. */
static unsigned
turn(block_fibres &block, unsigned first)
{
    unsigned ended = 0;
    for (unsigned number = first; number < block.fibres.size(); ++number) {
        resume(block, number);
        ended += block.fibres[number].ended;
    }
    if (ended != 0 && ended != block.fibres.size())
        refuse("some threads of a block wait at a barrier that others do not come to");
    return ended;
}

/* Thread 0 is a fibre in every block, so that it can be left at a barrier; where it comes to none, no thread does. */
bool
threads_wait(unsigned count, const std::function<void(unsigned)> &thread)
{
    block_fibres block = {thread, std::deque<fibre>(1), {}};
    block_fibres *const outer = running;
    running = &block;
    resume(block, 0);
    const bool wait = !block.fibres[0].ended;
    if (wait) {
        block.fibres.resize(count);
        turn(block, 1);
        while (turn(block, 0) == 0)
            ;
    }
    running = outer;
    return wait;
}
