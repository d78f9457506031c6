#include "machine.h"

#include <cstdio>
#include <cstring>

enum {
    CC_MAJOR = 9,
    CC_MINOR = 0,
    CLOCK_KHZ = 1000000,
    MEMORY_CLOCK_KHZ = 1000000,
    MEMORY_BUS_BITS = 128,
    FIRST_PCI_BUS = 0x41
};

/* Needs no driver and works in a forked child, where another thread may have taken the lock for ever. */
static cudaError_t
give_version(const char *name, int *version, int value)
{
    *version = value;
    if (forked_child())
        return cudaSuccess;
    machine &m = the_machine();
    const std::lock_guard<std::mutex> lock(m.mutex);
    const cudaError_t error = call_enter(m, name, false);
    return error == cudaSuccess ? error : call_leave(m, name, error);
}

cudaError_t
cudaDriverGetVersion(int *version)
{
    return give_version(__func__, version, the_machine().driver);
}

cudaError_t
cudaRuntimeGetVersion(int *version)
{
    return give_version(__func__, version, CUDART_VERSION);
}

cudaError_t
cudaGetDeviceCount(int *count)
{
    *count = 0;
    return cuda_call(__func__, [&](machine &m) {
        *count = m.devices;
        return cudaSuccess;
    });
}

cudaError_t
cudaDeviceSynchronize(void)
{
    return cuda_call(__func__, [&](machine &m) {
        const cudaError_t error = forbidden_beside_captures(m, current_device());
        if (error == cudaSuccess)
            finish_device(m, current_device());
        return error;
    });
}

cudaError_t
cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    return cuda_call(__func__, [&](machine &m) {
        if (device < 0 || device >= m.devices)
            return cudaErrorInvalidDevice;
        *properties = cudaDeviceProp();
        std::snprintf(properties->name, sizeof properties->name, "CUDA-runtime double %d", device);
        std::memset(properties->uuid.bytes, 0xd0 + device, sizeof properties->uuid.bytes);
        properties->major = CC_MAJOR;
        properties->minor = CC_MINOR;
        properties->totalGlobalMem = DEVICE_BYTES;
        properties->multiProcessorCount = MULTIPROCESSORS;
        properties->l2CacheSize = L2_BYTES;
        properties->memoryBusWidth = MEMORY_BUS_BITS;
        properties->warpSize = 32;
        properties->maxThreadsPerBlock = MAX_THREADS_A_BLOCK;
        properties->maxThreadsPerMultiProcessor = MAX_THREADS_A_MULTIPROCESSOR;
        properties->maxBlocksPerMultiProcessor = MAX_BLOCKS_A_MULTIPROCESSOR;
        properties->regsPerMultiprocessor = REGISTERS_A_MULTIPROCESSOR;
        properties->sharedMemPerMultiprocessor = SHARED_A_MULTIPROCESSOR;
        properties->reservedSharedMemPerBlock = RESERVED_SHARED;
        properties->asyncEngineCount = 2;
        properties->unifiedAddressing = 1;
        properties->canMapHostMemory = 1;
        properties->canUseHostPointerForRegisteredMem = 1;
        properties->hostRegisterSupported = 1;
        properties->memoryPoolsSupported = m.memory_pools;
        properties->concurrentKernels = 1;
        properties->pciBusID = FIRST_PCI_BUS + device;
        return cudaSuccess;
    });
}

cudaError_t
cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int device)
{
    static const std::map<cudaDeviceAttr, int> attributes = {
        {cudaDevAttrComputeCapabilityMajor, CC_MAJOR},
        {cudaDevAttrComputeCapabilityMinor, CC_MINOR},
        {cudaDevAttrMultiProcessorCount, MULTIPROCESSORS},
        {cudaDevAttrL2CacheSize, L2_BYTES},
        {cudaDevAttrMemoryClockRate, MEMORY_CLOCK_KHZ},
        {cudaDevAttrGlobalMemoryBusWidth, MEMORY_BUS_BITS},
        {cudaDevAttrClockRate, CLOCK_KHZ},
        {cudaDevAttrWarpSize, 32},
        {cudaDevAttrMaxThreadsPerBlock, MAX_THREADS_A_BLOCK},
        {cudaDevAttrMaxThreadsPerMultiProcessor, MAX_THREADS_A_MULTIPROCESSOR},
        {cudaDevAttrMaxBlocksPerMultiprocessor, MAX_BLOCKS_A_MULTIPROCESSOR},
        {cudaDevAttrMaxRegistersPerMultiprocessor, REGISTERS_A_MULTIPROCESSOR},
        {cudaDevAttrMaxSharedMemoryPerMultiprocessor, SHARED_A_MULTIPROCESSOR},
        {cudaDevAttrReservedSharedMemoryPerBlock, RESERVED_SHARED},
        {cudaDevAttrAsyncEngineCount, 2},
        {cudaDevAttrUnifiedAddressing, 1},
        {cudaDevAttrCanMapHostMemory, 1},
        {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
        {cudaDevAttrHostRegisterSupported, 1},
        {cudaDevAttrManagedMemory, 1},
        {cudaDevAttrConcurrentManagedAccess, 1},
        {cudaDevAttrPageableMemoryAccess, 0},
        {cudaDevAttrPciDomainId, 0},
        {cudaDevAttrPciDeviceId, 0},
    };
    return cuda_call(__func__, [&](machine &m) {
        if (device < 0 || device >= m.devices)
            return cudaErrorInvalidDevice;
        const auto found = attributes.find(attribute);
        if (attribute == cudaDevAttrMemoryPoolsSupported)
            *value = m.memory_pools;
        else if (attribute == cudaDevAttrPciBusId)
            *value = FIRST_PCI_BUS + device;
        else if (found != attributes.end())
            *value = found->second;
        else
            return cudaErrorInvalidValue;
        return cudaSuccess;
    });
}

/* What a call about two devices says of them first. */
static cudaError_t
two_devices(const machine &m, int device, int peer)
{
    const auto there = [&m](int number) { return number >= 0 && number < m.devices; };
    return there(device) && there(peer) && device != peer ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t
cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    return cuda_call(__func__, [&](machine &m) {
        const cudaError_t error = two_devices(m, device, peer);
        *can = error == cudaSuccess && m.peer_access;
        return error;
    });
}

/* Every pair has a link of rank 0 with atomic operations, as GPUs on one NVLink switch have. */
cudaError_t
cudaDeviceGetP2PAttribute(int *value, cudaDeviceP2PAttr attribute, int device, int peer)
{
    return cuda_call(__func__, [&](machine &m) {
        *value = attribute != cudaDevP2PAttrPerformanceRank;
        return two_devices(m, device, peer);
    });
}

/* Of the current device to another one's plain memory; its pools' needs an access of its own. */
cudaError_t
cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    return cuda_call(__func__, [&](machine &m) {
        const cudaError_t error = two_devices(m, current_device(), peer);
        if (error != cudaSuccess)
            return error;
        if (flags)
            return cudaErrorInvalidValue;
        if (!m.peer_access)
            return cudaErrorPeerAccessUnsupported;
        if (m.peers[current_device()] >> peer & 1)
            return cudaErrorPeerAccessAlreadyEnabled;
        m.peers[current_device()] |= 1u << peer;
        return cudaSuccess;
    });
}

cudaError_t
cudaDeviceDisablePeerAccess(int peer)
{
    return cuda_call(__func__, [&](machine &m) {
        const cudaError_t error = two_devices(m, current_device(), peer);
        if (error != cudaSuccess)
            return error;
        if (!(m.peers[current_device()] >> peer & 1))
            return cudaErrorPeerAccessNotEnabled;
        finish_device(m, current_device());
        m.peers[current_device()] &= ~(1u << peer);
        return cudaSuccess;
    });
}

cudaError_t
cudaDeviceGetPCIBusId(char *id, int room, int device)
{
    return cuda_call(__func__, [&](machine &m) {
        if (device < 0 || device >= m.devices)
            return cudaErrorInvalidDevice;
        if (!id || room < 13)
            return cudaErrorInvalidValue;
        std::snprintf(id, static_cast<size_t>(room), "0000:%02x:00.0", FIRST_PCI_BUS + device);
        return cudaSuccess;
    });
}
