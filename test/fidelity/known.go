package main

// known are differences that stay, with the reason: at most 0.2 % of the tests.
var known = map[string]string{
	"parallel/test-bootstrap-modules.js":                          "lists the modules that Node has loaded at its start; gaol's part of the guest loads more",
	"parallel/test-child-process-set-blocking.js":                 "needs python3, which the default image lacks",
	"parallel/test-cluster-bind-privileged-port.js":               "guests may listen on every port of their localhost, as ordinary programs expect",
	"parallel/test-cluster-shared-handle-bind-privileged-port.js": "the same",
	"parallel/test-dgram-udp6-link-local-address.js":              "needs an interface with a link-local address; a jail has only lo",
	"parallel/test-inspector-ip-detection.js":                     "needs an interface other than lo",
	"parallel/test-net-boundsocket.js":                            "the same: port 1 needs no privilege",
	"parallel/test-openssl-unreadable-config.js":                  "needs a user namespace, which guests cannot create",
	"parallel/test-strace-openat-openssl.js":                      "needs strace, which the image lacks; ptrace is refused",
	"sequential/test-without-async-context-frame.mjs":             "needs python3, which the default image lacks",
}
