#include "base/runtime.h"

#include <pthread.h>
#include <stdlib.h>

#include "choose/routes.h"
#include "host/threads.h"

struct runtime runtime;

static void
in_forked_child(void)
{
    if (atomic_load(&runtime.cuda_started))
        atomic_store(&runtime.forked_after_cuda, true);
    routes_after_fork(atomic_load(&runtime.cuda_started));
    threads_after_fork();
    output_pool_after_fork();
}

static void
at_exit(void)
{
    atomic_store(&runtime.shut_down, true);
    routes_forget();
    threads_stop();
}

static void
register_handlers(void)
{
    pthread_atfork(NULL, NULL, in_forked_child);
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
