/* Calls that a jail refuses. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <linux/filter.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static long user_namespace(void) { return syscall(SYS_unshare, CLONE_NEWUSER); }
static long add_key(void) { return syscall(SYS_add_key, "user", "x", "x", 1, KEY_SPEC_PROCESS_KEYRING); }
static long keyring(void) { return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, "x"); }
static long bpf(void) { return syscall(SYS_bpf, 0, NULL, 0); }
static long perf(void) { return syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0); }
static long rings(void) { return syscall(SYS_io_uring_setup, 1, NULL); }
static long asynchronous(void) { return syscall(SYS_io_setup, 1, NULL); }
static long user_faults(void) { return syscall(SYS_userfaultfd, 0); }
static long fanotify(void) { return syscall(SYS_fanotify_init, 0, 0); }
static long queue(void) { return syscall(SYS_mq_open, "x", 0, 0, NULL); }
static long segment(void) { return syscall(SYS_shmget, 0, 4096, 0600); }
static long semaphores(void) { return syscall(SYS_semget, 0, 1, 0600); }
static long messages(void) { return syscall(SYS_msgget, 0, 0600); }
static long secret(void) { return syscall(SYS_memfd_secret, 0); }
static long pages(void) { return syscall(SYS_vmsplice, 0, NULL, 0, 0); }
static long context(void) { return syscall(SYS_fsopen, "tmpfs", 0); }
static long tree(void) { return syscall(SYS_open_tree, -1, "/", 1); }
static long map(void) { return prctl(PR_SET_MM, PR_SET_MM_START_CODE, 0, 0, 0); }
static long ports(void) { return syscall(SYS_ioperm, 0, 1, 1); }
static long segments(void) { return syscall(SYS_modify_ldt, 0, NULL, 0); }
static long packets(void) { return socket(AF_PACKET, SOCK_RAW, 0); }
static long raw(void) { return socket(AF_INET, SOCK_RAW, 1); }
static long ciphers(void) { return socket(AF_ALG, SOCK_SEQPACKET, 0); }
static long machines(void) { return socket(AF_VSOCK, SOCK_STREAM, 0); }
static long audit(void) { return socket(AF_NETLINK, SOCK_RAW, 9); }

static long filters(void)
{
	struct sock_filter code = { BPF_RET | BPF_K, 0, 0, 0 };
	struct sock_fprog program = { 1, &code };

	return setsockopt(socket(AF_UNIX, SOCK_DGRAM, 0), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

const struct refusal refusals[] = {
	{ "user namespaces", user_namespace },
	{ "keys", add_key },
	{ "keyrings", keyring },
	{ "BPF", bpf },
	{ "perf events", perf },
	{ "io_uring", rings },
	{ "AIO contexts", asynchronous },
	{ "userfaultfd", user_faults },
	{ "fanotify", fanotify },
	{ "POSIX message queues", queue },
	{ "System V memory", segment },
	{ "System V semaphores", semaphores },
	{ "System V messages", messages },
	{ "memfd_secret", secret },
	{ "vmsplice", pages },
	{ "file system contexts", context },
	{ "mounts", tree },
	{ "PR_SET_MM", map },
	{ "I/O ports", ports },
	{ "LDT", segments },
	{ "packet sockets", packets },
	{ "raw sockets", raw },
	{ "AF_ALG", ciphers },
	{ "AF_VSOCK", machines },
	{ "netlink of audit", audit },
	{ "socket filters", filters },
	{ 0 },
};
