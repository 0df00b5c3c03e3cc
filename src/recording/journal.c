/*
 * Which journal is safe where. WAL needs memory shared by all who have the file open, which file
 * systems that span machines do not give, and FUSE may not; there a rollback journal is used.
 */
#include "recording/db.h"

#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

static const struct {
	uint32_t magic;
	const char *name;
} shared[] = {
	{ 0x00006969, "nfs" },    { 0x0bd00bd0, "lustre" }, { 0x65735546, "fuse" },
	{ 0x01021997, "9p" },     { 0xff534d42, "cifs" },   { 0xfe534d42, "smb2" },
	{ 0x0000517b, "smb" },    { 0x00c36400, "ceph" },   { 0x47504653, "gpfs" },
	{ 0x5346414f, "afs" },    { 0x6b414653, "kafs" },   { 0x73757245, "coda" },
	{ 0x19830326, "beegfs" }, { 0x01161970, "gfs2" },   { 0x7461636f, "ocfs2" },
	{ 0xaad7aaea, "panfs" },  { 0x20030528, "pvfs2" },  { 0x0000564c, "ncp" },
	{ 0xbacbacbc, "vmhgfs" }, { 0x786f4256, "vboxsf" },
};

static int statfs_folder(const char *path, struct statfs *s)
{
	char *folder = strdup(path);
	if (!folder)
		return -1;
	char *slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = 0;
	int rc = statfs(slash ? folder : ".", s);
	free(folder);
	return rc;
}

enum rec_journal db_journal_for(const char *path)
{
	struct statfs s;
	if (statfs(path, &s) && statfs_folder(path, &s))
		return REC_JOURNAL_ROLLBACK;
	for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
		if (shared[i].magic == (uint32_t)s.f_type)
			return REC_JOURNAL_ROLLBACK;
	return REC_JOURNAL_WAL;
}
