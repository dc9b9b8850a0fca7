package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"gaol/rootfs"
	"gaol/rootfs/layer"
)

const importLong = `Make an image of what somebody else made, and print its id on standard output.
SOURCE is one of

  registry.example/app:1   an image in a registry; docker:// may stand before it
  DIR                      an OCI layout, or a root file system
  FILE                     what docker save wrote, an OCI layout as a tar, or a tar of a
                           root file system; gzip and zstd are understood

and a path if there is something of that path. Digests are checked. Credentials
are those of docker login. Plain http is spoken with this host itself only.

Owners, set-id bits, devices and extended attributes are left out: the files belong
to root, and every guest can read them. What starts a jail is gaol's own. Of the
image's environment PATH is used; Node is the one in /usr/local/bin or in PATH. An
image without Node runs commands: gaol run --command --image NAME -- PROG ARG...

The image's programs run in jails and nowhere else. For --launcher zygote its Node
would run outside, as root: with --trust-node you say that it may.`

// adviseSource says what to do about a folder that root can't read.
func adviseSource(err error) error {
	if errors.Is(err, os.ErrPermission) && os.Geteuid() == 0 {
		return &advisedError{err, "import what root can read all of: a file system of the kernel's, such as /proc, is no image"}
	}
	return err
}

func (a *app) imageImport() *cobra.Command {
	var dir string
	maxSize := size(layer.DefaultBytes)
	o := rootfs.ImportOptions{Progress: a.stderr, Limits: layer.Limits{Entries: layer.DefaultEntries}}
	cmd := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Make an image of a container image, a folder or a tar",
		Long:  importLong,
		Example: `  gaol image import registry.example/app:1 --name app
  gaol image import ./saved.tar --name app
  gaol run --image app --command -- ls /`,
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := rootfs.Open(dir)
			if err != nil {
				return err
			}
			o.Limits.Bytes = int64(maxSize)
			image, err := store.Import(cmd.Context(), args[0], o)
			if err != nil {
				return adviseSource(err)
			}
			return a.print(image.ID + "\n")
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Name, "name", "", "`NAME` for the image, for --image")
	flags.StringVar(&o.Platform, "platform", "", "`OS/ARCH` of an image for several (default: this machine's)")
	flags.BoolVar(&o.TrustNode, "trust-node", false, "let the image's Node run as root outside of jails, for --launcher zygote")
	flags.Var(&maxSize, "max-size", "most `BYTES` that the image may have, such as 4g")
	flags.Int64Var(&o.Limits.Entries, "max-entries", layer.DefaultEntries, "most files and folders that it may have, `N`")
	addStoreFlag(cmd, &dir)
	return cmd
}
