// Package vfs describes the guest's file tree: its paths, and the folders that belong to the guest.
//
// The tree is a read-only image, a small layer of gaol's own files over it, and a writable
// layer in memory, bounded in bytes and inodes, that lasts as long as the runtime. The
// caller can add folders of the host (runtime.Mount). The content of a snapshot lies below
// the guest's own folders.
//
// Files can be renamed and linked between the guest's own folders and /tmp. The exceptions
// are /var/tmp and a guest's folder in which the image has files: there, such a call from
// another folder fails with EXDEV, and many small files take longer.
//
// The package mounts nothing and opens no file. Package hostfs, below it, gives the host
// access to the files of a live tree. It does not protect the files that the host itself
// puts into the image.
package vfs
