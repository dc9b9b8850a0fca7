/* An addon that looks up its own file by its own entry point, as the addons of @swc/core do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

typedef struct napi_env__ *napi_env;
typedef struct napi_value__ *napi_value;
int napi_create_string_utf8(napi_env, const char *, size_t, napi_value *);
int napi_set_named_property(napi_env, napi_value, const char *, napi_value);

__attribute__((visibility("default"))) napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
	napi_value s;
	Dl_info info;

	if (!dladdr((void *)napi_register_module_v1, &info) || napi_create_string_utf8(env, info.dli_fname, SIZE_MAX, &s) ||
	    napi_set_named_property(env, exports, "file", s))
		return NULL;
	return exports;
}
