/*
 * files: a Node addon with the operations on descriptors that Node has no functions for.
 * Each returns 0 or the errno.
 *
 *     dup(from, to)    dup2
 *     wait(fd, yes)    makes it blocking, or non-blocking
 *     size(fd, bytes)  sizes a pipe
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Declared here because an image has no headers. */
typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
typedef struct napi_callback_info__ *napi_callback_info;
int napi_create_function(napi_env, const char *, size_t, napi_value (*)(napi_env, napi_callback_info), void *, napi_value *);
int napi_create_int32(napi_env, int32_t, napi_value *);
int napi_set_named_property(napi_env, napi_value, const char *, napi_value);
int napi_get_cb_info(napi_env, napi_callback_info, size_t *, napi_value *, napi_value *, void **);
int napi_get_value_int32(napi_env, napi_value, int32_t *);

static int duplicates(int from, int to) { return dup2(from, to); }
static int waits(int fd, int yes) { return fcntl(fd, F_SETFL, yes ? 0 : O_NONBLOCK); }
static int sizes(int fd, int bytes) { return fcntl(fd, F_SETPIPE_SZ, bytes); }

static napi_value js_call(napi_env env, napi_callback_info info)
{
	napi_value args[2], result = NULL;
	int32_t n[2] = { -1, -1 };
	size_t count = 2;
	void *f;

	napi_get_cb_info(env, info, &count, args, NULL, &f);
	for (size_t i = 0; i < 2; i++)
		napi_get_value_int32(env, args[i], &n[i]);
	napi_create_int32(env, ((int (*)(int, int))f)(n[0], n[1]) < 0 ? errno : 0, &result);
	return result;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	static const struct { const char *name; int (*f)(int, int); } all[] = { { "dup", duplicates }, { "wait", waits }, { "size", sizes } };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		napi_value f;
		if (!napi_create_function(env, all[i].name, SIZE_MAX, js_call, (void *)all[i].f, &f))
			napi_set_named_property(env, exports, all[i].name, f);
	}
	return exports;
}
