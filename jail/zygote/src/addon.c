
/* ---- addon ---- */

/* Node's exit code. */
static const int32_t *exit_info;
enum { EXITING, EXIT_CODE, HAS_EXIT_CODE, EXIT_FIELDS };

/* Exits before Node frees its memory, when all JavaScript has run and its threads have
 * stopped. Freeing causes half of the page faults of a small run. */
static void exit_early(void *unused)
{
	(void)unused;
	if (forked && exit_info[EXITING])
		exit(exit_info[HAS_EXIT_CODE] ? exit_info[EXIT_CODE] : 0);
}

static const char *bind_arrays(napi_env env, napi_callback_info info)
{
	napi_value array[2];
	size_t n = 2, fields, times;
	int type;

	if (napi_get_cb_info(env, info, &n, array, NULL, NULL) || n != 2 ||
	    napi_get_typedarray_info(env, array[0], &type, &fields, (void **)&exit_info, NULL, NULL) || fields != EXIT_FIELDS ||
	    napi_get_typedarray_info(env, array[1], &type, &times, (void **)&milestones, NULL, NULL) || times != MILESTONES)
		return "no exit info, or no milestones";
	return napi_add_env_cleanup_hook(env, exit_early, NULL) ? "no memory" : NULL;
}

static napi_value throw(napi_env env, const char *text)
{
	napi_throw_error(env, NULL, text);
	return NULL;
}

static const char *prepare(napi_env env, napi_callback_info info)
{
	const char *error = bind_arrays(env, info);

	if (!error)
		error = all_asleep() ? find_node_fds() : "a helper thread does not sleep";
	if (!error)
		error = find_generator();
	if (error)
		return error;
	dl_iterate_phdr(enlarge_code, NULL);
	sort_free_memory();
	zygote = getpid();
	struct reply ready = { .pid = zygote };
	return send(CONTROL, &ready, sizeof(ready), MSG_NOSIGNAL) == sizeof(ready) ? NULL : "no host";
}

/* serve(exit info, milestones): returns [pid, is parked], only in a child. */
static napi_value serve(napi_env env, napi_callback_info info)
{
	struct order o;
	const char *error = prepare(env, info);
	napi_value list, item;

	if (error)
		return throw(env, error);
	do
		if (receive(CONTROL, &o, sizeof(o), order_fds) != sizeof(o))
			_exit(0); /* the host closed the socket */
	while ((run = execute_order(&o)) < 0);

	forked = true;
	enter(env, order_fds[1]);
	if (!q.r.parked)
		begin_program();
	if (napi_create_array_with_length(env, 2, &list) || napi_create_int32(env, getpid(), &item) ||
	    napi_set_element(env, list, 0, item) || napi_create_int32(env, q.r.parked, &item) ||
	    napi_set_element(env, list, 1, item))
		return throw(env, "no memory");
	return list;
}

/* receive(): returns [program, ...arguments]. */
static napi_value receive_program(napi_env env, napi_callback_info info)
{
	napi_value list, item;

	(void)info;
	if (q.r.parked)
		begin_program();
	if (napi_create_array_with_length(env, q.p.argc - q.p.script, &list))
		return throw(env, "no memory");
	for (uint32_t i = q.p.script; i < q.p.argc; i++)
		if (napi_create_string_utf8(env, q.argv[i], SIZE_MAX, &item) ||
		    napi_set_element(env, list, i - q.p.script, item))
			return throw(env, "no memory");
	return list;
}

static napi_value export(napi_env env, napi_value exports)
{
	napi_value f;

	if (napi_create_function(env, "serve", SIZE_MAX, serve, NULL, &f) ||
	    napi_set_named_property(env, exports, "serve", f) ||
	    napi_create_function(env, "receive", SIZE_MAX, receive_program, NULL, &f) ||
	    napi_set_named_property(env, exports, "receive", f))
		return throw(env, "no memory");
	return exports;
}

/*
 * Registers the addon as a linked binding. It does not export napi_register_module_v1: as
 * this object is preloaded, it would replace that of an addon which refers to its own.
 */
__attribute__((constructor)) static void link_binding(void)
{
	static napi_module binding = {.nm_version = 1, .nm_filename = __FILE__, .nm_register_func = export, .nm_modname = "gaol"};

	napi_module_register(&binding);
}
