#include "base/runtime.h"

#include <pthread.h>
#include <stdlib.h>

struct runtime runtime;

static struct runtime_hooks *first_hooks;

void
runtime_register(struct runtime_hooks *hooks)
{
    hooks->next = first_hooks;
    first_hooks = hooks;
}

static void
before_fork(void)
{
    for (const struct runtime_hooks *hooks = first_hooks; hooks; hooks = hooks->next)
        if (hooks->before_fork)
            hooks->before_fork();
}

static void
in_forked_child(void)
{
    const bool used_cuda = atomic_load(&runtime.cuda_started);
    if (used_cuda)
        atomic_store(&runtime.forked_after_cuda, true);
    for (const struct runtime_hooks *hooks = first_hooks; hooks; hooks = hooks->next)
        if (hooks->in_forked_child)
            hooks->in_forked_child(used_cuda);
}

static void
at_exit(void)
{
    atomic_store(&runtime.shut_down, true);
    for (const struct runtime_hooks *hooks = first_hooks; hooks; hooks = hooks->next)
        if (hooks->at_exit)
            hooks->at_exit();
}

static void
register_handlers(void)
{
    pthread_atfork(before_fork, NULL, in_forked_child);
    atexit(at_exit);
}

void
runtime_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_handlers);
}

bool
runtime_cuda_usable(void)
{
    return !atomic_load(&runtime.forked_after_cuda) && !atomic_load(&runtime.shut_down);
}
