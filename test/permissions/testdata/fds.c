/*
 * fds: what another run can do with passed descriptors.
 *
 *     fds give SOCKET FILE FOLDER    listens, prints "up", and passes them to clients:
 *                                    FILE to be read, to be written, and by O_PATH,
 *                                    FOLDER to be listed, and by O_PATH
 *     fds take SOCKET NAME           receives and tries them: a line for each attempt,
 *                                    its errno. NAME is a file in FOLDER
 *     fds open FILE FOLDER NAME      opens them itself
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum { READ, WRITE, PATH, LIST, FOLDER, COUNT };

static int fds[COUNT];
static union { char bytes[CMSG_SPACE(sizeof(fds))]; struct cmsghdr header; } control;

static struct msghdr message(struct iovec *v)
{
	return (struct msghdr){ .msg_iov = v, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
}

static void open_all(const char *file, const char *folder)
{
	fds[READ] = open(file, O_RDONLY);
	fds[WRITE] = open(file, O_WRONLY);
	fds[PATH] = open(file, O_PATH);
	fds[LIST] = open(folder, O_RDONLY | O_DIRECTORY);
	fds[FOLDER] = open(folder, O_PATH);
}

static int give(int s)
{
	struct iovec v = { "x", 1 };
	struct msghdr m = message(&v);
	char byte;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	for (int to; (to = accept(s, NULL, NULL)) >= 0; close(to))
		if (sendmsg(to, &m, 0) != 1 || read(to, &byte, 1) < 0)
			return 1;
	return 0;
}

static int take(int s)
{
	char byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = message(&v);

	if (recvmsg(s, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return 1;
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fds));
	return 0;
}

static void say(const char *what, long result) { printf("%s: %d\n", what, result < 0 ? errno : 0); }

static long again(int fd, int flags)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags);
}

static void try(const char *name)
{
	char b[4096];

	say("read", pread(fds[READ], b, 1, 0));
	say("map", mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fds[READ], 0) == MAP_FAILED ? -1 : 0);
	say("write what is for reading", pwrite(fds[READ], "x", 1, 0));
	say("read what is for writing", pread(fds[WRITE], b, 1, 0));
	say("write", pwrite(fds[WRITE], "t", 1, 0));
	say("truncate", ftruncate(fds[WRITE], 10));
	say("read a path", pread(fds[PATH], b, 1, 0));
	say("list", syscall(SYS_getdents64, fds[LIST], b, sizeof(b)));
	say("reopen for reading", again(fds[READ], O_RDONLY));
	say("reopen for writing", again(fds[READ], O_WRONLY));
	say("reopen for writing what was", again(fds[WRITE], O_RDWR));
	say("reopen a path", again(fds[PATH], O_RDONLY));
	say("reopen a path for writing", again(fds[PATH], O_WRONLY));
	say("reopen a folder", again(fds[FOLDER], O_RDONLY | O_DIRECTORY));
	say("reopen a folder by a dot", openat(fds[FOLDER], ".", O_RDONLY | O_DIRECTORY));
	say("open in a folder", openat(fds[FOLDER], name, O_RDONLY));
	say("open in a listed folder", openat(fds[LIST], name, O_RDONLY));
	say("make in a folder", openat(fds[FOLDER], "made", O_WRONLY | O_CREAT, 0644));
	say("remove in a folder", unlinkat(fds[FOLDER], "victim", 0));
	say("link out of a folder", linkat(fds[LIST], name, AT_FDCWD, "/tmp/linked", 0));
	say("link a descriptor", linkat(fds[READ], "", AT_FDCWD, "/tmp/linked2", AT_EMPTY_PATH));
	say("go to a folder", fchdir(fds[FOLDER]));
	say("open there", open(name, O_RDONLY));
}

int main(int argc, char **argv)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);

	if (argc < 4)
		return 2;
	strncpy(at.sun_path, argv[2], sizeof(at.sun_path) - 1);
	if (!strcmp(argv[1], "open")) {
		open_all(argv[2], argv[3]);
	} else if (!strcmp(argv[1], "give")) {
		open_all(argv[3], argv[4]);
		unlink(argv[2]);
		if (bind(s, (void *)&at, sizeof(at)) || listen(s, 8))
			return 1;
		puts("up");
		fflush(stdout);
		return give(s);
	} else if (connect(s, (void *)&at, sizeof(at)) || take(s)) {
		return 1;
	}
	try(argv[argc - 1]);
	return 0;
}
