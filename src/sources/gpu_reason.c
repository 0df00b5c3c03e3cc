/* Why no GPU is shown; see gpu_reason.h. */
#include "sources/gpu_reason.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

enum { VENDOR_AMD = 0x1002, VENDOR_NVIDIA = 0x10de, VENDOR_INTEL = 0x8086 };
enum { CLASS_DISPLAY = 0x03, CLASS_ACCELERATOR = 0x12 };

/* "0x10de\n" */
static bool read_hex(const char *dir, const char *name, const char *file, unsigned long *ret)
{
	char path[PATH_MAX], text[32];
	int n = snprintf(path, sizeof(path), "%s/%s/%s", dir, name, file);
	if (n < 0 || (size_t)n >= sizeof(path) ||
	    io_read_text(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return false;
	*ret = strtoul(text, NULL, 16);
	return true;
}

static void count_vendor(struct gpu_facts *facts, unsigned long vendor)
{
	facts->nvidia += vendor == VENDOR_NVIDIA;
	facts->amd += vendor == VENDOR_AMD;
	facts->intel += vendor == VENDOR_INTEL;
}

/* A card's device is also on the PCI bus, except on some boards: count cards only where PCI shows none. */
static void scan(struct gpu_facts *facts, const char *sys_root, const char *where, bool pci)
{
	char dir[PATH_MAX / 2];
	unsigned long class, vendor;
	int n = snprintf(dir, sizeof(dir), "%s%s", sys_root, where);
	DIR *d = n > 0 && (size_t)n < sizeof(dir) ? opendir(dir) : NULL;
	for (struct dirent *de; d && (de = readdir(d));) {
		if (*de->d_name == '.')
			continue;
		if (!pci) {
			if (!strncmp(de->d_name, "card", 4) && !strchr(de->d_name, '-') &&
			    read_hex(dir, de->d_name, "device/vendor", &vendor))
				count_vendor(facts, vendor);
			continue;
		}
		if (!read_hex(dir, de->d_name, "class", &class) ||
		    (class >> 16 != CLASS_DISPLAY && class >> 16 != CLASS_ACCELERATOR))
			continue;
		if (read_hex(dir, de->d_name, "vendor", &vendor))
			count_vendor(facts, vendor);
	}
	if (d)
		closedir(d);
}

void gpu_facts_read(struct gpu_facts *ret, const char *proc_root, const char *sys_root)
{
	char path[PATH_MAX];
	struct gpu_facts facts = { 0 };
	scan(&facts, sys_root, "/bus/pci/devices", true);
	if (!facts.nvidia && !facts.amd && !facts.intel)
		scan(&facts, sys_root, "/class/drm", false);
	int n = snprintf(path, sizeof(path), "%s/driver/nvidia/version", proc_root);
	facts.nvidia_driver = n > 0 && (size_t)n < sizeof(path) && !access(path, F_OK);
	*ret = facts;
}

static void add_count(struct buf *out, int n, const char *what)
{
	if (n == 1)
		buf_addf(out, "an %s GPU", what);
	else
		buf_addf(out, "%d %s GPUs", n, what);
}

void gpu_reason(struct buf *out, const struct gpu_facts *facts, const char *failure)
{
	if (failure && facts->nvidia_driver)
		buf_addf(out, "the NVIDIA driver is loaded but its library does not work: %s",
			 failure);
	else if (failure)
		buf_addf(out, "no NVIDIA driver is loaded: %s", failure);
	else if (facts->nvidia_driver)
		buf_adds(out, "the NVIDIA driver is loaded but libnvidia-ml.so.1 was not found: "
			      "install the driver's libraries (in a container: start it with "
			      "--gpus all or NVIDIA_DRIVER_CAPABILITIES=utility)");
	else
		buf_adds(out, "no NVIDIA driver: libnvidia-ml.so.1 was not found");
	if (facts->nvidia && !facts->nvidia_driver) {
		buf_adds(out, "; ");
		add_count(out, facts->nvidia, "NVIDIA");
		buf_adds(out,
			 " on the PCI bus would need it: install it or load the module nvidia");
	}
	if (facts->amd || facts->intel) {
		buf_adds(out, "; ");
		if (facts->amd)
			add_count(out, facts->amd, "AMD");
		buf_adds(out, facts->amd && facts->intel ? " and " : "");
		if (facts->intel)
			add_count(out, facts->intel, "Intel");
		buf_adds(out, " cannot be read by this version");
	}
}
