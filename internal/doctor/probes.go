package doctor

// probes are all checks, in the order in which they are made and printed: a
// failure of an early one often explains those of later ones.
func probes() []probe {
	list := []probe{
		{"privileges", "make namespaces, cgroups and mounts", lookPrivileges},
		{"kernel", "keep file operations and descriptors in the guest's tree", lookKernel},
		{"root folder", "make mounts and user namespaces", lookRoot},
		{"seccomp", "filter system calls", lookSeccomp},
		{"libseccomp", "number the system calls of the filter", lookLibseccomp},
		{"landlock", "hold the file permissions of policies, once gaol has them", lookLandlock},
		{"socket lists", "bound what guests with a network have in sockets", lookSocketLists},
		{"audit", "", lookAudit},
		{"user namespaces", "", lookUserNamespaceLimit},
		{"unprivileged user namespaces", "", lookUnprivileged},
		{"apparmor", "", lookAppArmor},
	}
	for _, n := range namespaces {
		list = append(list, probe{n.name + " namespace", n.why, n.look})
	}
	return append(list,
		probe{"cgroup", "limit and count memory, processor time and processes", lookCgroup},
		probe{"tmpfs", "hold what guests write, within limits", func(x *examination) finding { return x.lookMount(childTmpfs) }},
		probe{"overlayfs", "lay the guest's files over the image", func(x *examination) finding { return x.lookMount(childOverlay) }},
		probe{"image store", "keep images", lookStore},
		probe{"file owners", "show the image's files as root's", lookOwners},
		probe{"default image", "show guests Node and its libraries", lookImage},
		probe{"image tools", "build images", lookTools},
		probe{"program in a jail", "", lookProgram},
	)
}
