/* Stream-ordered memory. A fresh block for every allocation: reuse is a matter of accounts only, so that what is used
 * before its allocation or after its release in stream order is always found out. */
#include "machine.h"

#include <algorithm>

static pool *
pool_of(machine &m, cudaMemPool_t handle)
{
    const auto found = m.pool_handles.find(reinterpret_cast<uintptr_t>(handle));
    return found == m.pool_handles.end() ? nullptr : found->second.get();
}

/* Which other devices may use a pool's memory, the one that there is too. */
cudaError_t
cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc *wanted, size_t count)
{
    return cuda_call(__func__, [&](machine &m) {
        pool *const p = pool_of(m, handle);
        if (!p || !wanted)
            return cudaErrorInvalidValue;
        for (size_t i = 0; i < count; ++i) {
            const int device = wanted[i].location.id;
            if (wanted[i].location.type != cudaMemLocationTypeDevice || device < 0 || device >= m.devices ||
                device == p->device || !m.peer_access)
                return cudaErrorInvalidDevice;
        }
        for (size_t i = 0; i < count; ++i) {
            const unsigned bit = 1u << wanted[i].location.id;
            p->access = wanted[i].flags == cudaMemAccessFlagsProtReadWrite ? p->access | bit : p->access & ~bit;
        }
        return cudaSuccess;
    });
}

static void
shrink(machine &m, pool &p, uint64_t keep)
{
    const uint64_t kept = std::max(p.used, std::min(p.reserved, keep));
    m.device_bytes[p.device] -= p.reserved - kept;
    p.reserved = kept;
}

/* One block for all launches, in no pool's accounts; it goes with the last of the nodes' copies. */
static void
allocate_in_graph(machine &m, stream &capturing, void **memory, size_t bytes)
{
    const block_ptr made = block_new(m, bytes, memory_kind::device, capturing.device);
    made->of_graph = true;
    made->allocated = false;
    const std::shared_ptr<void> owner(made->start, [&m, made](void *) { block_erase(m, made); });
    capture_node(
        capturing,
        [made, owner] {
            if (made->allocated)
                fault("a graph is launched again while memory of its own is not freed: not in the double yet");
            made->allocated = true;
        },
        work_kind::other);
    *memory = made->start;
}

static void
release_in_graph(stream &capturing, const block_ptr &block)
{
    block->released = true;
    capture_node(
        capturing, [block] { block->allocated = false; }, work_kind::other);
}

static cudaError_t
allocate(machine &m, pool *p, void **memory, size_t bytes, const stream_ptr &stream)
{
    if (!p || !memory)
        return cudaErrorInvalidValue;
    if (!m.memory_pools)
        return cudaErrorNotSupported;
    if (!stream->capturing) {
        const cudaError_t error = forbidden_in_capture(m);
        if (error != cudaSuccess)
            return error;
    }
    *memory = nullptr;
    if (bytes == 0)
        return cudaSuccess;
    if (stream->capturing) {
        if (bytes > m.capacity)
            return cudaErrorMemoryAllocation;
        allocate_in_graph(m, *stream, memory, bytes);
        return cudaSuccess;
    }
    const uint64_t fresh = p->used + bytes > p->reserved ? p->used + bytes - p->reserved : 0;
    if (m.device_bytes[p->device] + fresh > m.capacity || fresh > DEVICE_BYTES)
        return cudaErrorMemoryAllocation;
    m.device_bytes[p->device] += fresh;
    p->used += bytes;
    p->reserved += fresh;
    p->used_high = std::max(p->used_high, p->used);
    p->reserved_high = std::max(p->reserved_high, p->reserved);

    const block_ptr made = block_new(m, bytes, memory_kind::device, p->device);
    made->pool = p;
    made->allocated = false;
    enqueue(m, stream, [made] { made->allocated = true; });
    *memory = made->start;
    return cudaSuccess;
}

void
pool_take_back(machine &m, pool &p, size_t bytes)
{
    p.used -= bytes;
    shrink(m, p, p.destroyed ? 0 : p.threshold);
}

cudaError_t
cudaMallocAsync(void **memory, size_t bytes, cudaStream_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        stream_ptr stream;
        const cudaError_t error = usable_stream(m, handle, stream);
        return error == cudaSuccess ? allocate(m, &m.default_pools[stream->device], memory, bytes, stream) : error;
    });
}

cudaError_t
cudaMallocFromPoolAsync(void **memory, size_t bytes, cudaMemPool_t pool_handle, cudaStream_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        stream_ptr stream;
        const cudaError_t error = usable_stream(m, handle, stream);
        return error == cudaSuccess ? allocate(m, pool_of(m, pool_handle), memory, bytes, stream) : error;
    });
}

cudaError_t
cudaFreeAsync(void *memory, cudaStream_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        stream_ptr stream;
        cudaError_t error = usable_stream(m, handle, stream);
        if (error == cudaSuccess && !stream->capturing)
            error = forbidden_in_capture(m);
        if (error != cudaSuccess)
            return error;
        if (!memory)
            return cudaSuccess;
        const block_ptr found = block_at(m, memory);
        if (!found || found->start != memory || found->kind != memory_kind::device || found->released)
            return cudaErrorInvalidValue;
        if (stream->capturing && !found->of_graph) {
            misuse("%p was allocated outside of the capture that frees it", memory);
            return cudaErrorInvalidValue;
        }
        if (!stream->capturing && found->of_graph)
            fault("a capture's memory is freed outside: not in the double yet");
        if (stream->capturing) {
            release_in_graph(*stream, found);
            return cudaSuccess;
        }
        found->released = true;
        enqueue(m, stream, [&m, found] {
            if (!found->allocated)
                fault("%p is freed before its allocation in stream order", static_cast<void *>(found->start));
            block_release(m, found);
        });
        return cudaSuccess;
    });
}

cudaError_t
cudaMemPoolCreate(cudaMemPool_t *handle, const cudaMemPoolProps *properties)
{
    return cuda_call(__func__, [&](machine &m) {
        if (!handle || !properties || properties->allocType != cudaMemAllocationTypePinned ||
            properties->location.type != cudaMemLocationTypeDevice || properties->location.id < 0 ||
            properties->location.id >= m.devices)
            return cudaErrorInvalidValue;
        if (!m.memory_pools)
            return cudaErrorNotSupported;
        *handle = handle_new<cudaMemPool_t>(m);
        auto made = std::make_unique<pool>();
        made->device = properties->location.id;
        m.pool_handles[reinterpret_cast<uintptr_t>(*handle)] = std::move(made);
        return cudaSuccess;
    });
}

/* The pool itself goes on for the allocations that it still has. */
cudaError_t
cudaMemPoolDestroy(cudaMemPool_t handle)
{
    return cuda_call(__func__, [&](machine &m) {
        pool *p = pool_of(m, handle);
        if (!p)
            return cudaErrorInvalidValue;
        p->destroyed = true;
        shrink(m, *p, 0);
        m.retired_pools.push_back(std::move(m.pool_handles[reinterpret_cast<uintptr_t>(handle)]));
        m.pool_handles.erase(reinterpret_cast<uintptr_t>(handle));
        return cudaSuccess;
    });
}

cudaError_t
cudaMemPoolTrimTo(cudaMemPool_t handle, size_t keep)
{
    return cuda_call(__func__, [&](machine &m) {
        pool *p = pool_of(m, handle);
        if (!p)
            return cudaErrorInvalidValue;
        shrink(m, *p, keep);
        return cudaSuccess;
    });
}

/* Where an attribute lives: a 64-bit count or an int. */
static bool
attribute_of(pool &p, cudaMemPoolAttr attribute, uint64_t **count, int **number)
{
    *count = nullptr;
    *number = nullptr;
    switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
        *number = &p.reuse[0];
        return true;
    case cudaMemPoolReuseAllowOpportunistic:
        *number = &p.reuse[1];
        return true;
    case cudaMemPoolReuseAllowInternalDependencies:
        *number = &p.reuse[2];
        return true;
    case cudaMemPoolAttrReleaseThreshold:
        *count = &p.threshold;
        return true;
    case cudaMemPoolAttrReservedMemCurrent:
        *count = &p.reserved;
        return true;
    case cudaMemPoolAttrReservedMemHigh:
        *count = &p.reserved_high;
        return true;
    case cudaMemPoolAttrUsedMemCurrent:
        *count = &p.used;
        return true;
    case cudaMemPoolAttrUsedMemHigh:
        *count = &p.used_high;
        return true;
    default:
        return false;
    }
}

cudaError_t
cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void *value)
{
    return cuda_call(__func__, [&](machine &m) {
        pool *p = pool_of(m, handle);
        uint64_t *count;
        int *number;
        if (!p || !value || !attribute_of(*p, attribute, &count, &number))
            return cudaErrorInvalidValue;
        if (count)
            *static_cast<uint64_t *>(value) = *count;
        else
            *static_cast<int *>(value) = *number;
        return cudaSuccess;
    });
}

/* The current counts are read-only; a high-water mark can only be set to zero, which is to its current count. */
cudaError_t
cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void *value)
{
    return cuda_call(__func__, [&](machine &m) {
        pool *p = pool_of(m, handle);
        uint64_t *count;
        int *number;
        if (!p || !value || !attribute_of(*p, attribute, &count, &number) ||
            attribute == cudaMemPoolAttrReservedMemCurrent || attribute == cudaMemPoolAttrUsedMemCurrent)
            return cudaErrorInvalidValue;
        if (number)
            *number = *static_cast<int *>(value);
        else if (attribute == cudaMemPoolAttrReleaseThreshold)
            p->threshold = *static_cast<uint64_t *>(value);
        else if (*static_cast<uint64_t *>(value) != 0)
            return cudaErrorInvalidValue;
        else
            *count = attribute == cudaMemPoolAttrReservedMemHigh ? p->reserved : p->used;
        return cudaSuccess;
    });
}
