/* The page faults of the calling thread until now. What a job took that has faulted pages in tells nothing of the next
 * one's, which finds them there. */
#ifndef VECADD_HOST_PAGE_FAULTS_H
#define VECADD_HOST_PAGE_FAULTS_H

#include <sys/resource.h>

static inline long
page_faults(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt + usage.ru_majflt;
}

#endif
