/* Memory: pages that the host cannot touch while no work runs, poisoned when fresh and without access when freed. */
#include "machine.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

static constexpr size_t PAGE = 4096, ALIGNMENT = 256;

/* All ones: a NaN in every floating-point type, and no sum of small integers. */
static constexpr int POISON = 0xff;

static size_t
round_up(size_t bytes, size_t to)
{
    return (bytes + to - 1) / to * to;
}

/* One more page at each end stays without access. */
mapping::mapping(size_t wanted, bool device) : bytes(round_up(wanted, PAGE))
{
    void *all = mmap(nullptr, bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        throw std::bad_alloc();
    base = static_cast<char *>(all) + PAGE;
    allow(true);
    std::memset(base, POISON, bytes);
    allow(!device);
}

/* The pages go back, the addresses do not: code that still uses them is stopped. */
mapping::~mapping()
{
    mmap(base, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

void
mapping::allow(bool access) const
{
    mprotect(base, bytes, access ? PROT_READ | PROT_WRITE : PROT_NONE);
}

/* Placed at the end of its pages, so that one element too many is one page too far. */
block_ptr
block_new(machine &m, size_t bytes, memory_kind kind, int device)
{
    const auto made = std::make_shared<block>();
    made->bytes = bytes;
    made->kind = kind;
    made->device = device;
    const size_t room = round_up(bytes, ALIGNMENT);
    made->pages = std::make_shared<mapping>(room, made->on_device());
    made->start = made->pages->base + made->pages->bytes - room;
    m.blocks[reinterpret_cast<uintptr_t>(made->start)] = made;
    if (m.open_devices >> device & 1 && made->on_device())
        made->pages->allow(true);
    return made;
}

void
block_erase(machine &m, const block_ptr &block)
{
    block->freed = true;
    m.blocks.erase(reinterpret_cast<uintptr_t>(block->start));
}

void
block_release(machine &m, const block_ptr &block)
{
    if (block->pool)
        pool_take_back(m, *block->pool, block->bytes);
    else if (block->kind == memory_kind::pinned)
        m.pinned_bytes -= block->bytes;
    else
        m.device_bytes[block->device] -= block->bytes;
    block_erase(m, block);
}

block_ptr
block_at(machine &m, const void *address)
{
    const uintptr_t at = reinterpret_cast<uintptr_t>(address);
    auto next = m.blocks.upper_bound(at);
    if (next == m.blocks.begin())
        return nullptr;
    const block_ptr &found = std::prev(next)->second;
    return at - reinterpret_cast<uintptr_t>(found->start) < found->bytes ? found : nullptr;
}

bool
may_touch(machine &m, const void *address, int device)
{
    const block_ptr found = block_at(m, address);
    if (!found)
        fault("%p is used and is not memory of a device: ordinary host memory, or freed by now", address);
    else if (!found->allocated)
        fault("%p is used before its allocation in stream order", address);
    else if (found->on_device() && found->device != device &&
             !(found->pool ? found->pool->access >> device & 1 : m.peers[device] >> found->device & 1))
        fault("%p is memory of device %d and is used by a kernel on device %d", address, found->device, device);
    else
        return true;
    return false;
}

void
open_memory(machine &m, int device)
{
    if (m.open_devices >> device & 1)
        return;
    for (const auto &[address, block] : m.blocks)
        if (block->on_device() && block->device == device)
            block->pages->allow(true);
    m.open_devices |= 1u << device;
}

void
close_memory(machine &m)
{
    for (const auto &[address, block] : m.blocks)
        if (block->on_device() && m.open_devices >> block->device & 1)
            block->pages->allow(false);
        else if (block->kind == memory_kind::managed)
            block->pages->allow(block->kernels == 0);
    m.open_devices = 0;
}

/* The runtime's checks for an allocation, then the allocation. */
static cudaError_t
allocate(machine &m, void **memory, size_t bytes, memory_kind kind)
{
    if (!memory)
        return cudaErrorInvalidValue;
    *memory = nullptr;
    if (bytes == 0)
        return cudaSuccess;
    const int device = current_device();
    size_t &used = kind == memory_kind::pinned ? m.pinned_bytes : m.device_bytes[device];
    const size_t capacity = kind == memory_kind::pinned ? PINNED_BYTES : m.capacity;
    if (used > capacity || bytes > capacity - used)
        return cudaErrorMemoryAllocation;
    used += bytes;
    const block_ptr made = block_new(m, bytes, kind, device);
    made->context = current_context();
    *memory = made->start;
    return cudaSuccess;
}

cudaError_t
cudaMalloc(void **memory, size_t bytes)
{
    return cuda_call(__func__, [&](machine &m) { return allocate(m, memory, bytes, memory_kind::device); });
}

/* The flags are those of any host and device, or of this device until a stream is attached. */
cudaError_t
cudaMallocManaged(void **memory, size_t bytes, unsigned flags)
{
    return cuda_call(__func__, [&](machine &m) {
        if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
            return cudaErrorInvalidValue;
        if (bytes == 0) {
            fault("no bytes of managed memory are not in the double yet");
            return cudaErrorInvalidValue;
        }
        return allocate(m, memory, bytes, memory_kind::managed);
    });
}

/* Waits for the device, as the real one does. */
cudaError_t
cudaFree(void *memory)
{
    return cuda_call(__func__, [&](machine &m) {
        if (!memory)
            return cudaSuccess;
        const block_ptr found = block_at(m, memory);
        const bool ours = found && (found->kind == memory_kind::device || found->kind == memory_kind::managed);
        if (!ours || found->start != memory || found->released)
            return cudaErrorInvalidValue;
        finish_device(m, found->device);
        block_release(m, found);
        return cudaSuccess;
    });
}

cudaError_t
cudaMallocHost(void **memory, size_t bytes)
{
    return cuda_call(__func__, [&](machine &m) { return allocate(m, memory, bytes, memory_kind::pinned); });
}

cudaError_t
cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    return cuda_call(__func__, [&](machine &m) {
        if (flags & ~(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
            return cudaErrorInvalidValue;
        return allocate(m, memory, bytes, memory_kind::pinned);
    });
}

/* Promises no wait: what is still queued on this memory is a fault. */
cudaError_t
cudaFreeHost(void *memory)
{
    return cuda_call(__func__, [&](machine &m) {
        if (!memory)
            return cudaSuccess;
        const block_ptr found = block_at(m, memory);
        if (!found || found->start != memory || found->kind != memory_kind::pinned)
            return cudaErrorInvalidValue;
        block_release(m, found);
        return cudaSuccess;
    });
}

cudaError_t
cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    return cuda_call(__func__, [&](machine &m) {
        if (!memory || bytes == 0 || flags & ~(cudaHostRegisterPortable | cudaHostRegisterMapped))
            return cudaErrorInvalidValue;
        if (block_at(m, memory))
            return cudaErrorHostMemoryAlreadyRegistered;
        const auto made = std::make_shared<block>();
        made->start = static_cast<char *>(memory);
        made->bytes = bytes;
        made->kind = memory_kind::registered;
        made->device = current_device();
        m.blocks[reinterpret_cast<uintptr_t>(memory)] = made;
        return cudaSuccess;
    });
}

cudaError_t
cudaHostUnregister(void *memory)
{
    return cuda_call(__func__, [&](machine &m) {
        const block_ptr found = block_at(m, memory);
        if (!found || found->start != memory || found->kind != memory_kind::registered)
            return cudaErrorHostMemoryNotRegistered;
        block_erase(m, found);
        return cudaSuccess;
    });
}

cudaError_t
cudaMemGetInfo(size_t *free, size_t *total)
{
    return cuda_call(__func__, [&](machine &m) {
        *total = m.capacity;
        *free = m.capacity - std::min(m.capacity, m.device_bytes[current_device()]);
        return cudaSuccess;
    });
}
