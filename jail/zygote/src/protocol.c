/*
 * zygote: a warmed-up Node process that forks, and the code with which its child becomes a
 * run.
 *
 * One object with two interfaces. As an LD_PRELOAD library it makes Node forkable. As an
 * N-API addon it has two functions: serve(), which waits for orders and returns only in
 * children, and receive(), which returns a child's program.
 *
 *     host -> zygote   struct order, with descriptors:        SOCK_SEQPACKET
 *                      run, pidfd of the jail's pid 1 [, directory of the cgroup]
 *     zygote -> host   struct reply: the child's pid, or the failed step
 *
 *     host -> child    struct request, with descriptors:      SOCK_STREAM, "run"
 *                      files to join cgroups by [, ruleset];
 *                      limits | filter
 *     child -> host    struct report                          if it is parked
 *     host -> child    struct program, with descriptors:
 *                      0, 1, 2 ... of the guest;
 *                      text
 *     child -> host    struct report [, with a descriptor:    if it was parked, or
 *                      the filter's listener]                 the filter is listened to
 *                      end of file                            the guest's code runs
 *
 * A report contains the failed step, after which the child has exited, or step 0.
 *
 * text has argc + envc + 1 NUL-terminated strings: arguments, variables, working
 * directory. With terminal, descriptor 0 becomes the session's controlling terminal. With
 * script = k > 0 the child returns to JavaScript, and the arguments from the k-th on are
 * the program's; otherwise it executes the first argument.
 *
 * The child's parent is the host, not the zygote (CLONE_PARENT): the host waits for it,
 * even if the zygote has ended. It is created in the jail's pid namespace and enters the
 * other namespaces by one setns. Until the filter is loaded it is not dumpable, so that no
 * process of the guest's user can trace it or write to its memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum step {
	STEP_REQUEST = 1, STEP_PID_NAMESPACE, STEP_CLONE, STEP_CGROUP, STEP_ARGUMENTS, STEP_NAMESPACES,
	STEP_DESCRIPTORS, STEP_SESSION, STEP_TERMINAL, STEP_LIMIT, STEP_USER, STEP_CAPABILITIES,
	STEP_DIRECTORY, STEP_NO_NEW_PRIVS, STEP_LANDLOCK, STEP_SECCOMP, STEP_LOOP, STEP_EXEC,
};

enum {
	GUEST_FDS = 6, /* the zygote leaves these free for the guest's descriptors; */
	CONTROL = 6,   /* its socket is the next, and Node's descriptors follow */
	MAX_FDS = 32,  /* in a message */
	MAX_TEXT = 8 << 20,
	CGROUP = 1,    /* order.flags: the third descriptor is a cgroup to create the child in */
	ENLARGE = 2,   /* order.flags: do not fork, but use huge pages; the descriptor is /proc/PID/smaps of the zygote */
	RULESET = 1,   /* request.flags: the last descriptor is a Landlock ruleset to enforce */
	LISTENER = 2,  /* request.flags: the filter has a listener, which the host gets */
};

struct order { uint32_t serial, flags; };
struct reply { uint32_t serial; int32_t pid; uint32_t step, error; };
struct report { uint32_t step, error; };
struct limit { uint32_t resource, unused; uint64_t most; };
struct request { uint32_t parked, joins, limits, instructions, uid, gid, flags, ruleset_flags; };
struct program { uint32_t script, terminal, files, argc, envc, text; };

/* ---- Node's interfaces, declared here because images have no headers ---- */

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
typedef napi_value (*napi_callback)(napi_env, napi_callback_info);
struct uv_loop;
typedef struct {
	int nm_version;
	unsigned int nm_flags;
	const char *nm_filename;
	napi_value (*nm_register_func)(napi_env, napi_value);
	const char *nm_modname;
	void *nm_priv, *reserved[4];
} napi_module;

void napi_module_register(napi_module *);
int napi_create_function(napi_env, const char *, size_t, napi_callback, void *, napi_value *);
int napi_create_array_with_length(napi_env, size_t, napi_value *);
int napi_create_int32(napi_env, int32_t, napi_value *);
int napi_create_string_utf8(napi_env, const char *, size_t, napi_value *);
int napi_set_named_property(napi_env, napi_value, const char *, napi_value);
int napi_set_element(napi_env, napi_value, uint32_t, napi_value);
int napi_get_cb_info(napi_env, napi_callback_info, size_t *, napi_value *, napi_value *, void **);
int napi_get_typedarray_info(napi_env, napi_value, int *, size_t *, void **, napi_value *, size_t *);
int napi_add_env_cleanup_hook(napi_env, void (*)(void *), void *);
int napi_throw_error(napi_env, const char *, const char *);
int napi_get_uv_event_loop(napi_env, struct uv_loop **);
int uv_loop_fork(struct uv_loop *);
char **uv_setup_args(int, char **);
int RAND_poll(void); /* OpenSSL's */
/* Variables of Node, if its build exports them. */
extern uint64_t _ZN4node11per_process15node_start_timeE __attribute__((weak));
#define node_start_time _ZN4node11per_process15node_start_timeE
extern uint64_t _ZN4node11performance20performance_v8_startE __attribute__((weak));
#define v8_start _ZN4node11performance20performance_v8_startE
extern uint64_t _ZN4node11performance25performance_process_startE __attribute__((weak));
#define process_start _ZN4node11performance25performance_process_startE
extern double _ZN4node11performance35performance_process_start_timestampE __attribute__((weak));
#define process_start_timestamp _ZN4node11performance35performance_process_start_timestampE
