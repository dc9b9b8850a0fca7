/* Files, names and attributes in the guest's tree, and files of /proc. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static int made(int result) { return result ? -1 : 1; }

static int tmpfs_files(void) { return made(mknod(fresh("/dev/shm"), S_IFREG | 0600, 0)); }
static int overlay_files(void) { return made(mknod(fresh("/tmp"), S_IFREG | 0600, 0)); }
static int folders(void) { return made(mkdir(fresh("/dev/shm"), 0700)); }
static int fifos(void) { return made(mkfifo(fresh("/dev/shm"), 0600)); }

static const char *long_text(int size)
{
	static char text[4096];

	memset(text, 'x', sizeof(text));
	text[size] = 0;
	return text;
}

/* Up to 127 bytes are not stored in pages. */
static int short_links(void) { return made(symlink(long_text(127), fresh("/dev/shm"))); }
static int long_links(void) { return made(symlink(long_text(4000), fresh("/dev/shm"))); }

static int hard_links(void)
{
	static char first[64];

	if (!first[0]) {
		strcpy(first, fresh("/dev/shm"));
		if (mknod(first, S_IFREG | 0600, 0))
			return -1;
	}
	return made(link(first, fresh("/dev/shm")));
}

/* Nested folders, by relative names, so that the length of paths is no limit. */
static int deep(void)
{
	if (steps == 0 && chdir("/dev/shm"))
		return -1;
	char name[256];

	snprintf(name, sizeof(name), "%0*d", 250, worker);
	return mkdir(name, 0700) || chdir(name) ? -1 : 1;
}

/* Names that do not exist. */
static int missing(const char *folder)
{
	char path[512];
	struct stat st;
	int i;

	for (i = 0; i < 100; i++) {
		snprintf(path, sizeof(path), "%s/%0*ld", folder, 250, steps * 100 + i);
		if (!stat(path, &st))
			return -1;
	}
	return i;
}

static int missing_tmpfs(void) { return missing("/dev/shm"); }
static int missing_overlay(void) { return missing("/usr/lib"); }
static int missing_proc(void) { return missing("/proc/self"); }

static int attributes(void)
{
	const char *path = fresh("/dev/shm");
	char name[256];
	int i;

	if (mknod(path, S_IFREG | 0600, 0))
		return -1;
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "user.%0*d", 240, i);
		if (setxattr(path, name, "", 0, 0))
			return i ? i : -1;
	}
	return i;
}

/* An access control list of the maximum length. */
static size_t list(unsigned char *text)
{
	struct entry { uint16_t tag, perm; uint32_t id; } e;
	const size_t most = (65536 - 4) / sizeof(e);
	size_t i;

	memcpy(text, (uint32_t[]){ 2 }, 4); /* the version */
	for (i = 0; i < most; i++) {
		uint16_t tag = i == 0 ? 0x01 : i < most - 3 ? 0x02 : i == most - 3 ? 0x04 : i == most - 2 ? 0x10 : 0x20;

		e = (struct entry){ tag, 6, tag == 0x02 ? getuid() : ~0u };
		memcpy(text + 4 + i * sizeof(e), &e, sizeof(e));
	}
	return 4 + most * sizeof(e);
}

static unsigned char acl[65536];
static size_t acl_size;

static int acl_of(int fd)
{
	if (!acl_size)
		acl_size = list(acl);
	return fd < 0 || fsetxattr(fd, "system.posix_acl_access", acl, acl_size, 0) ? -1 : 1;
}

static int memfd_lists(void) { return acl_of(memfd_create("", 0)); }

static int file_lists(void)
{
	int fd = open(fresh("/dev/shm"), O_RDWR | O_CREAT, 0600), n = acl_of(fd);

	return close(fd), n;
}

/* A folder has a second list, for files that are created in it. */
static int folder_lists(void)
{
	const char *path = fresh("/tmp");

	if (!acl_size)
		acl_size = list(acl);
	if (mkdir(path, 0700) || setxattr(path, "system.posix_acl_access", acl, acl_size, 0))
		return -1;
	return setxattr(path, "system.posix_acl_default", acl, acl_size, 0) ? -1 : 2;
}

/*
 * An overlay merges a folder's lists of names when it is read, and keeps the result as
 * long as it is open. After a change the next open reads them again.
 */
static int merged(const char *folder)
{
	char path[512], names[300]; /* of one file: the others are read but not returned */
	int fd;

	if (steps == 0 && worker == 0)
		for (int i = 0; i < 4000; i++) {
			snprintf(path, sizeof(path), "%s/%0*d", folder, 250, i);
			if (mknod(path, S_IFREG | 0600, 0))
				break;
		}
	strcpy(path, fresh(folder));
	if (mkdir(path, 0700) || rmdir(path) || (fd = open(folder, O_RDONLY | O_DIRECTORY)) < 0)
		return -1;
	return syscall(SYS_getdents64, fd, names, sizeof(names)) > 0 ? 1 : -1;
}

static int merged_mount(void) { return merged("/merged"); }
static int merged_tmp(void) { return merged("/tmp"); }

/* A file of /proc that was read in part keeps the rest of its text. */
static int half_read(const char *path)
{
	char c;
	int fd = open(path, O_RDONLY);

	return fd < 0 || read(fd, &c, 1) < 0 ? -1 : 1;
}

static int maps(void)
{
	if (steps == 0)
		for (int i = 0; i < 500; i++)
			mmap(NULL, 8192, i % 2 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return half_read("/proc/self/maps");
}

static int mounts(void) { return half_read("/proc/self/mountinfo"); }
/* Files of a tree on disk. Each has its own inode, and a part of a large one its own record of where it is. */
static int disk_files(void) { return made(mknod(fresh("/tmp"), S_IFREG | 0600, 0)); }

static int disk_file(void)
{
	static int fd = -1;

	return fd < 0 ? fd = open("/tmp/large", O_RDWR | O_CREAT, 0600) : fd;
}

static int disk_extents(void) { return made(fallocate(disk_file(), 0, (off_t)steps * 8192, 4096)); }
static int disk_holes(void) { return pwrite(disk_file(), "x", 1, (off_t)steps * 8192) == 1 ? 1 : -1; }

static int disk_missing(void)
{
	return access(fresh("/tmp"), F_OK) && errno == ENOENT ? 1 : -1;
}

static int status(void) { return half_read("/proc/self/status"); }
static int network(void) { return half_read("/proc/self/net/dev"); }
static int usage(void) { return half_read("/proc/stat"); }

static int process_files(void)
{
	static const char *names[] = { "status", "maps", "environ", "cmdline", "stat", "fd", "fdinfo", "ns", "task", "limits" };
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", getpid(), names[steps % 10]);
	return kept(open(path, O_RDONLY));
}

const struct mode tree_modes[] = {
	{ "tmpfs files", SINGLE, tmpfs_files },
	{ "overlay files", SINGLE, overlay_files },
	{ "folders", SINGLE, folders },
	{ "fifos", SINGLE, fifos },
	{ "short links", SINGLE, short_links },
	{ "long links", SINGLE, long_links },
	{ "hard links", SINGLE, hard_links },
	{ "deep folders", SINGLE, deep },
	{ "missing names, tmpfs", SINGLE, missing_tmpfs },
	{ "missing names, overlay", SINGLE, missing_overlay },
	{ "missing names, proc", SINGLE, missing_proc },
	{ "disk: files", SINGLE, disk_files },
	{ "disk: extents", SINGLE, disk_extents },
	{ "disk: holes", SINGLE, disk_holes },
	{ "disk: missing names", SINGLE, disk_missing },
	{ "attributes", SINGLE, attributes },
	{ "access lists, memfd", SPREAD, memfd_lists },
	{ "access lists, tmpfs", SINGLE, file_lists },
	{ "access lists, overlay", SINGLE, folder_lists },
	{ "open folders, mount", SPREAD, merged_mount },
	{ "open folders, /tmp", SPREAD, merged_tmp },
	{ "/proc/self/maps half read", SPREAD, maps },
	{ "/proc/self/mountinfo half read", SPREAD, mounts },
	{ "/proc/self/status half read", SPREAD, status },
	{ "/proc/net/dev half read", SPREAD, network },
	{ "/proc/stat half read", SPREAD, usage },
	{ "files of /proc", SPREAD, process_files },
	{ 0 },
};
