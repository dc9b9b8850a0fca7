/* Calls that a jail refuses. Each is tried once. */
#define _GNU_SOURCE
#include "exhaust.h"

#include <linux/keyctl.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int done(long result) { return result < 0 ? -1 : 1; }

static int user_namespace(void) { return done(syscall(SYS_unshare, CLONE_NEWUSER)); }
static int add_key(void) { return done(syscall(SYS_add_key, "user", "x", "x", 1, KEY_SPEC_PROCESS_KEYRING)); }
static int keyring(void) { return done(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, "x")); }
static int bpf(void) { return done(syscall(SYS_bpf, 0, NULL, 0)); }
static int perf(void) { return done(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0)); }
static int rings(void) { return done(syscall(SYS_io_uring_setup, 1, NULL)); }
static int asynchronous(void) { return done(syscall(SYS_io_setup, 1, NULL)); }
static int user_faults(void) { return done(syscall(SYS_userfaultfd, 0)); }
static int fanotify(void) { return done(syscall(SYS_fanotify_init, 0, 0)); }
static int queue(void) { return done(syscall(SYS_mq_open, "x", 0, 0, NULL)); }
static int segment(void) { return done(syscall(SYS_shmget, 0, 4096, 0600)); }
static int semaphores(void) { return done(syscall(SYS_semget, 0, 1, 0600)); }
static int messages(void) { return done(syscall(SYS_msgget, 0, 0600)); }
static int secret(void) { return done(syscall(SYS_memfd_secret, 0)); }
static int pages(void) { return done(syscall(SYS_vmsplice, 0, NULL, 0, 0)); }
static int context(void) { return done(syscall(SYS_fsopen, "tmpfs", 0)); }
static int tree(void) { return done(syscall(SYS_open_tree, -1, "/", 1)); }
static int map(void) { return done(prctl(PR_SET_MM, PR_SET_MM_START_CODE, 0, 0, 0)); }
static int ports(void) { return done(syscall(SYS_ioperm, 0, 1, 1)); }
static int segments(void) { return done(syscall(SYS_modify_ldt, 0, NULL, 0)); }
static int packets(void) { return done(socket(AF_PACKET, SOCK_RAW, 0)); }
static int raw(void) { return done(socket(AF_INET, SOCK_RAW, 1)); }
static int ciphers(void) { return done(socket(AF_ALG, SOCK_SEQPACKET, 0)); }
static int machines(void) { return done(socket(AF_VSOCK, SOCK_STREAM, 0)); }
static int audit(void) { return done(socket(AF_NETLINK, SOCK_RAW, 9)); }

const struct mode refused_modes[] = {
	{ "user namespaces", REFUSED, user_namespace },
	{ "keys", REFUSED, add_key },
	{ "keyrings", REFUSED, keyring },
	{ "BPF", REFUSED, bpf },
	{ "perf events", REFUSED, perf },
	{ "io_uring", REFUSED, rings },
	{ "AIO contexts", REFUSED, asynchronous },
	{ "userfaultfd", REFUSED, user_faults },
	{ "fanotify", REFUSED, fanotify },
	{ "POSIX message queues", REFUSED, queue },
	{ "System V memory", REFUSED, segment },
	{ "System V semaphores", REFUSED, semaphores },
	{ "System V messages", REFUSED, messages },
	{ "memfd_secret", REFUSED, secret },
	{ "vmsplice", REFUSED, pages },
	{ "file system contexts", REFUSED, context },
	{ "mounts", REFUSED, tree },
	{ "PR_SET_MM", REFUSED, map },
	{ "I/O ports", REFUSED, ports },
	{ "LDT", REFUSED, segments },
	{ "packet sockets", REFUSED, packets },
	{ "raw sockets", REFUSED, raw },
	{ "AF_ALG", REFUSED, ciphers },
	{ "AF_VSOCK", REFUSED, machines },
	{ "netlink of audit", REFUSED, audit },
	{ 0 },
};
