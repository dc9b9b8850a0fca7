package rootfs

// mountPoints lists the folders that the jail mounts at, or that belong to the guest in
// every tree. An imported image gets them and keeps the rest of its own layout.
var mountPoints = []string{"/proc", "/dev", "/tmp", "/var/tmp", "/workspace", "/home/node"}

// folders lists the folders that no file creates. The first line are mount points of the
// jail.
var folders = []string{
	"/proc", "/dev", "/run", "/tmp", "/var/tmp", "/workspace", "/home/node",
	"/root", "/opt", "/etc", "/var/cache", "/var/lib", "/var/log",
	"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/share", "/usr/libexec",
	"/usr/local/bin", "/usr/local/lib", "/usr/local/share",
}

// links lists the symbolic links that every image has.
var links = []struct{ path, target string }{
	{"/bin", "usr/bin"}, {"/sbin", "usr/sbin"}, {"/lib", "usr/lib"}, {"/lib64", "usr/lib64"}, // as on every current distribution
	{"/etc/localtime", "../usr/share/zoneinfo/Etc/UTC"},
}

// texts lists the files that come from neither the host nor a package. The guest's user is
// node, as in the official Docker images of Node. The accounts of root and "nobody" are of no
// use to a guest.
var texts = []struct{ path, content string }{
	{"/etc/passwd", `root:x:0:0:root:/root:/bin/sh
node:x:1000:1000:node:/home/node:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
`},
	{"/etc/group", `root:x:0:
node:x:1000:
nogroup:x:65534:
`},
	{"/etc/hosts", `127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
`},
	{"/etc/nsswitch.conf", `passwd: files
group: files
hosts: files dns
`},
	{"/etc/resolv.conf", ""}, // a jail without a network; another file is mounted over it otherwise
	{"/etc/os-release", `NAME="gaol image"
PRETTY_NAME="gaol image"
ID=gaol
VERSION_ID=` + builder + `
`},
	{"/etc/timezone", "Etc/UTC\n"},
}
