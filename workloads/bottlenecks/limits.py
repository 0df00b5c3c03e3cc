# What a memory cgroup says about this process, version 1 or 2: for the trainings that must know how much memory
# they may use. `within` beside this file gives a command such a limit.

import os

FILES = {  # by version: the limit, what is used, and the line of memory.stat that can be had back
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
NO_LIMIT = 1 << 50


def number(path):
    try:
        with open(path) as file:
            text = file.read().strip()
    except OSError:
        return NO_LIMIT
    return NO_LIMIT if text == "max" else int(text)


def cgroup():
    """(folder of this process's memory cgroup, where it is mounted, version), or None."""
    mounts = {}
    with open("/proc/self/mounts") as file:
        for line in file:
            _, folder, kind, options = line.split()[:4]
            if kind == "cgroup" and "memory" in options.split(","):
                mounts[1] = folder
            elif kind == "cgroup2":
                mounts[2] = folder
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            version = 1 if "memory" in controllers.split(",") else 2 if not controllers else None
            if version in mounts and (version == 1 or 1 not in mounts):
                folder = mounts[version] + path.rstrip("/")
                # In a container the path is seen from outside: the mount is then all there is.
                return (folder if os.path.isdir(folder) else mounts[version]), mounts[version], version
    return None


class Memory:
    """The tightest limit on the way up from this process's cgroup, and how much of it is used."""

    def __init__(self):
        self.limit = NO_LIMIT
        found = cgroup()
        if not found:
            return
        folder, mount, version = found
        limit, self.usage, self.reclaimable = FILES[version]
        while folder.startswith(mount):
            if number(os.path.join(folder, limit)) < self.limit:
                self.limit, self.folder = number(os.path.join(folder, limit)), folder
            folder = os.path.dirname(folder)

    def used(self):
        """Bytes that count towards the limit and cannot be had back by dropping cached files."""
        with open(os.path.join(self.folder, "memory.stat")) as file:
            stat = dict(line.split() for line in file)
        return number(os.path.join(self.folder, self.usage)) - int(stat[self.reclaimable])
