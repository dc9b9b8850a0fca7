/*
 * spawn: tries to start processes and programs, by system calls where it can.
 *
 *     spawn WAY...         tries each way and prints a line: its errno's name, or "ok"
 *     spawn hammer COUNT   tries to fork that often
 *     spawn try PROGRAM    executes it in a child of this process
 *
 * A way that executes another program prints "ran" and ends. Built with -DADDON it is a
 * library that tries the ways in the variable WAYS as soon as it is loaded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *args[] = { "sh", "-c", "echo ran", NULL }, *env[] = { NULL };
static char stack[65536] __attribute__((aligned(64)));

static int child(void *unused) { _exit(0); }

static long clone_with(int flags) { return clone(child, stack + sizeof(stack), flags, NULL, NULL, NULL, NULL); }

static long plain_clone(void) { return clone_with(SIGCHLD); }
static long clone_vm(void) { return clone_with(CLONE_VM | SIGCHLD); }
static long clone_vfork(void) { return clone_with(CLONE_VM | CLONE_VFORK | SIGCHLD); }
static long clone_parent(void) { return clone_with(CLONE_PARENT | SIGCHLD); }
static long clone_silent(void) { return clone_with(CLONE_FS); }
static long clone_sighand(void) { return clone_with(CLONE_VM | CLONE_SIGHAND | SIGCHLD); }

static long raw_fork(void)
{
#ifdef SYS_fork
	long pid = syscall(SYS_fork);
#else
	long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#endif
	if (pid == 0)
		_exit(0);
	return pid;
}

static long high_clone(void) /* the kernel reads only the lower half of the flags */
{
	long pid = syscall(SYS_clone, (1UL << 48) | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	return pid;
}

static long libc_vfork(void)
{
	pid_t pid = vfork();
	if (pid == 0)
		_exit(0);
	return pid;
}

static long raw_clone3(void)
{
	struct clone_args a = { .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &a, sizeof(a));
	if (pid == 0)
		_exit(0);
	return pid;
}

static long spawned(void)
{
	pid_t pid;
	errno = posix_spawn(&pid, "/bin/true", NULL, NULL, args, env);
	return errno ? -1 : pid;
}

static void *nothing(void *unused) { return NULL; }

static long thread(void)
{
	pthread_t t;
	errno = pthread_create(&t, NULL, nothing, NULL);
	return errno ? -1 : pthread_join(t, NULL);
}

static long by_execve(void) { return syscall(SYS_execve, "/bin/sh", args, env); }
static long by_execveat(void) { return syscall(SYS_execveat, AT_FDCWD, "/bin/sh", args, env, 0); }
static long by_descriptor(void) { return syscall(SYS_execveat, open("/bin/sh", O_PATH), "", args, env, AT_EMPTY_PATH); }
static long by_self(void)
{
	static char *again[] = { "spawn", "thread", NULL };

	return syscall(SYS_execve, "/proc/self/exe", again, env);
}

/* Copies a program into a memory file. */
static int memory(unsigned flags)
{
	char block[4096];
	int from = open("/bin/sh", O_RDONLY), to = syscall(SYS_memfd_create, "x", flags);

	for (ssize_t n; to >= 0 && (n = read(from, block, sizeof(block))) > 0;)
		if (write(to, block, n) != n)
			return -1;
	close(from);
	return to;
}

static long run_memory(int fd)
{
	char path[64];

	if (fd < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	syscall(SYS_execve, path, args, env);
	return syscall(SYS_execveat, fd, "", args, env, AT_EMPTY_PATH);
}

static long by_memfd(void) { return run_memory(memory(0)); }
static long by_memfd_exec(void)
{
	int fd = memory(0x10); /* MFD_EXEC */

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 all of them may be executed */
		fd = memory(0);
	return run_memory(fd);
}
static long by_memfd_sealed(void)
{
	int fd = memory(8); /* MFD_NOEXEC_SEAL: fchmod cannot undo it */

	if (fd >= 0)
		fchmod(fd, 0755);
	return run_memory(fd);
}

static const struct {
	const char *name;
	long (*go)(void);
} ways[] = {
	{ "fork", raw_fork }, { "vfork", libc_vfork }, { "clone", plain_clone }, { "clone-vm", clone_vm },
	{ "clone-vfork", clone_vfork }, { "clone-parent", clone_parent }, { "clone-silent", clone_silent },
	{ "clone-sighand", clone_sighand }, { "clone-high", high_clone }, { "clone3", raw_clone3 }, { "posix_spawn", spawned },
	{ "thread", thread }, { "execve", by_execve }, { "execveat", by_execveat }, { "execveat-fd", by_descriptor },
	{ "execve-self", by_self }, { "memfd", by_memfd }, { "memfd-exec", by_memfd_exec }, { "memfd-sealed", by_memfd_sealed },
};

static void try(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (strcmp(ways[i].name, name))
			continue;
		errno = 0;
		long n = ways[i].go();
		dprintf(1, "%s %s\n", name, n < 0 ? strerrorname_np(errno) : "ok");
		while (n > 0 && waitpid(-1, NULL, __WALL | WNOHANG) > 0)
			;
	}
}

#ifdef ADDON
__attribute__((constructor)) static void loaded(void)
{
	char *list = strdup(getenv("WAYS") ?: "");

	for (char *s = strtok(list, ","); s; s = strtok(NULL, ","))
		try(s);
}
#else
int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "hammer")) {
		int refused = 0;

		puts("up");
		fflush(stdout);
		for (int i = atoi(argv[2]); i > 0; i--)
			refused += raw_fork() < 0;
		printf("%d\n", refused);
		return 0;
	}
	if (argc >= 3 && !strcmp(argv[1], "try")) {
		int status, pid = fork();

		if (pid == 0) {
			execve(argv[2], argv + 2, env);
			dprintf(1, "%s\n", strerrorname_np(errno));
			_exit(0);
		}
		return waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
	}
	for (int i = 1; i < argc; i++)
		try(argv[i]);
	return 0;
}
#endif
