#include "gpu/link.h"

#include <ctype.h>
#include <cuda_runtime_api.h>
#include <stdio.h>

#include "gpu/errors.h"

enum { MOST_LANES = 32 };

/* The number that a file begins with, in tenths; 0 for anything else. */
static unsigned
tenths_in(const char *folder, const char *name)
{
    char path[128];
    unsigned whole = 0, tenths = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%4u.%1u", &whole, &tenths) < 1)
        whole = 0;
    fclose(file);
    return 10 * whole + tenths;
}

/* The files say "32.0 GT/s PCIe" and "16", and for what is not known "Unknown" and "255". Of both there is a current
 * number too, but an idle GPU has its link run slower. From 8 GT/s on 128 of 130 bits are data, below 8 of 10. */
double
link_rate_of(const char *folder)
{
    const double transfers = 1e8 * tenths_in(folder, "max_link_speed");
    const unsigned lanes = tenths_in(folder, "max_link_width") / 10;
    const double data = transfers >= 8e9 ? 128.0 / 130 : 8.0 / 10;
    return lanes <= MOST_LANES ? transfers * data / 8 * lanes : 0;
}

double
device_link_rate(int device)
{
    char folder[64] = "/sys/bus/pci/devices/";
    const size_t length = sizeof "/sys/bus/pci/devices/" - 1;
    const cudaError_t error = cudaDeviceGetPCIBusId(folder + length, (int)(sizeof folder - length), device);
    if (error != cudaSuccess) {
        device_ignore(error);
        return 0;
    }
    for (char *at = folder + length; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    return link_rate_of(folder);
}
