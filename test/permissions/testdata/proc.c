/*
 * proc: tries to affect another process.
 *
 *     proc victim          prints its pid, and then each real-time signal that it receives
 *     proc signal PID      sends it one in each way; the first way uses the first signal
 *     proc inspect PID     reads it in each way
 *     proc own             does both to a child of its own
 *     proc bystand PID     changes its limits
 *
 * One line for each way: its name, and an errno's name or "ok".
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *said(long n) { return n < 0 ? strerrorname_np(errno) : "ok"; }

static void print(const char *name, long n)
{
	printf("%s %s\n", name, said(n));
	errno = 0;
}

static void hit(int number) /* async-signal-safe: without stdio */
{
	char line[] = "hit 0\n";

	line[4] += number - SIGRTMIN;
	if (write(1, line, sizeof(line) - 1) < 0)
		_exit(1);
}

_Noreturn static void victim(void)
{
	for (int s = SIGRTMIN; s < SIGRTMIN + 10; s++)
		signal(s, hit);
	dprintf(1, "%d\n", getpid());
	for (;;)
		pause();
}

/* Makes the kernel send the signal when a pipe is readable. */
static long owned(int pid, int number)
{
	int p[2];

	if (pipe(p) || fcntl(p[0], F_SETOWN, pid) || fcntl(p[0], F_SETSIG, number) || fcntl(p[0], F_SETFL, O_ASYNC | O_NONBLOCK))
		return -1;
	return write(p[1], "x", 1);
}

static void send_all(int pid)
{
	siginfo_t info = { .si_code = SI_QUEUE };
	int s = SIGRTMIN, fd = syscall(SYS_pidfd_open, pid, 0);

	print("kill", kill(pid, s++));
	print("tkill", syscall(SYS_tkill, pid, s++));
	print("tgkill", syscall(SYS_tgkill, pid, pid, s++));
	info.si_signo = s;
	print("rt_sigqueueinfo", syscall(SYS_rt_sigqueueinfo, pid, s++, &info));
	info.si_signo = s;
	print("rt_tgsigqueueinfo", syscall(SYS_rt_tgsigqueueinfo, pid, pid, s++, &info));
	print("pidfd_send_signal", syscall(SYS_pidfd_send_signal, fd, s++, NULL, 0));
	print("group", kill(-getpgid(pid), s++));
	print("nothing", kill(pid, 0));
	owned(pid, s++);
	kill(-1, s++);
	puts("done");
}

static long read_from(int pid, const char *what)
{
	char path[64], byte;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
	int fd = open(path, O_RDONLY);
	return fd < 0 ? -1 : !strcmp(what, "mem") || !strcmp(what, "fd") ? 0 : read(fd, &byte, 1);
}

static int listed(int pid)
{
	char number[16];
	DIR *proc = opendir("/proc");

	snprintf(number, sizeof(number), "%d", pid);
	for (struct dirent *e; (e = readdir(proc));)
		if (!strcmp(e->d_name, number))
			return 1;
	return 0;
}

static void look_at(int pid)
{
	static const char *files[] = { "environ", "mem", "maps", "cmdline", "fd", "status", "stat" };
	char byte, path[64];
	struct iovec here = { &byte, 1 }, there = { &byte, 1 };
	int fd = syscall(SYS_pidfd_open, pid, 0);

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		print(files[i], read_from(pid, files[i]));
	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	print("exe", readlink(path, &byte, 1));
	printf("listed %s\n", listed(pid) ? "ok" : "ENOENT");
	print("attach", ptrace(PTRACE_ATTACH, pid, 0, 0));
	print("seize", ptrace(PTRACE_SEIZE, pid, 0, 0));
	print("process_vm_readv", process_vm_readv(pid, &here, 1, &there, 1, 0));
	print("process_vm_writev", process_vm_writev(pid, &here, 1, &there, 1, 0));
	print("pidfd_getfd", syscall(SYS_pidfd_getfd, fd, 1, 0));
	print("kcmp", syscall(SYS_kcmp, getpid(), pid, 0, 0, 0));
}

static int own(void)
{
	int status, pid = fork();

	if (pid == 0)
		for (;;)
			pause();
	print("environ", read_from(pid, "status"));
	print("listed", listed(pid) ? 0 : -1);
	print("kill", kill(pid, SIGKILL));
	print("wait", waitpid(pid, &status, 0));
	print("self", kill(getpid(), 0));
	return 0;
}

static void bystand(int pid)
{
	struct rlimit64 limit = { 0 };
	cpu_set_t set;

	print("prlimit", syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, NULL, &limit));
	print("prlimit-set", syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, &limit, NULL));
	print("prlimit-own", syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, NULL));
	print("setpriority", setpriority(PRIO_PROCESS, pid, 19));
	print("sched_getaffinity", sched_getaffinity(pid, sizeof(set), &set));
	print("sched_setaffinity", sched_setaffinity(pid, sizeof(set), &set));
	print("ioprio_set", syscall(SYS_ioprio_set, 1, pid, 0));
	print("getpgid", getpgid(pid));
}

int main(int argc, char **argv)
{
	int pid = argc > 2 ? atoi(argv[2]) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "victim"))
		victim();
	if (!strcmp(argv[1], "own"))
		return own();
	if (!strcmp(argv[1], "signal"))
		send_all(pid);
	if (!strcmp(argv[1], "inspect"))
		look_at(pid);
	if (!strcmp(argv[1], "bystand"))
		bystand(pid);
	return 0;
}
