/* What kernels asked the L2 to keep. It is a double of their requests alone: nothing is evicted here. */
#include "kernel_on_cpu.h"
#include "machine.h"

static constexpr uintptr_t LINE = 128;

/* Under the machine's lock: kernels run inside the call that waits for them. */
void
l2_holds(const void *vector)
{
    the_machine().evict_last[reinterpret_cast<uintptr_t>(vector) / LINE] = true;
}

void
l2_demotes(const void *line)
{
    machine &m = the_machine();
    const uintptr_t at = reinterpret_cast<uintptr_t>(line);
    const block_ptr found = block_at(m, line);
    if (at % LINE != 0)
        fault("%p is demoted and is not the begin of a line of the L2", line);
    else if (!found || at + LINE > reinterpret_cast<uintptr_t>(found->start) + found->bytes)
        fault("%p is demoted and is not a whole line of one allocation", line);
    else
        m.evict_last[at / LINE] = false;
}
