package jail

import "gaol/jail/cgroup"

// limitFiles are the files of /sys/fs/cgroup. There is no mount of cgroups in a jail: libuv
// needs only these to size Node for the limits.
func limitFiles(l cgroup.Limits) []File {
	var list []File
	for path, text := range l.Files() {
		list = append(list, File{Path: path, Mode: 0o444, Data: []byte(text)})
	}
	return list
}
