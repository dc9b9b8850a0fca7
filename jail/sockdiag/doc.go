// Package sockdiag reads the kernel's lists of TCP and UDP sockets, see sock_diag(7).
package sockdiag
