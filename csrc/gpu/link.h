/* The link between a GPU and the host, by its attributes. */
#ifndef VECADD_GPU_LINK_H
#define VECADD_GPU_LINK_H

/* The most that a device's link carries in one direction in theory, bytes a second; 0 where the system does not tell.
 * The device may be slower: a slot may have fewer lanes than the card. */
double device_link_rate(int device);

/* The same of a PCI device by its folder in /sys/bus/pci/devices. */
double link_rate_of(const char *folder);

#endif
