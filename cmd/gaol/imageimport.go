package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/rootfs"
	"gaol/rootfs/layer"
)

const importLong = `Import an image that another tool built, and print its id on standard output.
SOURCE is one of

  registry.example/app:1   an image in a registry, with or without docker:// before it
  DIR                      an OCI layout, or a root file system
  FILE                     the output of docker save, an OCI layout as a tar, or a tar of a
                           root file system; may be compressed with gzip or zstd

and a path if a file or folder of that name exists. Digests are checked. Credentials are
those of docker login. Plain http is used for registries on this host only.

Owners, set-id bits, devices and extended attributes are dropped: the files belong to
root, and every guest can read them. The program that starts a jail is gaol's own. Of the
image's environment, only PATH is used. Node is the one in /usr/local/bin or in PATH. An
image without Node can run commands: gaol run --command --image NAME -- PROG ARG...

The image's programs run in jails only. For --launcher zygote its Node would run outside,
as root: --trust-node allows that.`

func (a *app) imageImport() *cobra.Command {
	o := rootfs.ImportOptions{Progress: a.stderr, Limits: layer.Limits{Bytes: layer.DefaultBytes, Entries: layer.DefaultEntries}}
	cmd := &cobra.Command{
		Use:   "import SOURCE",
		Short: "Import a container image, a folder or a tar",
		Long:  importLong,
		Example: `  gaol image import registry.example/app:1 --name app
  gaol image import ./saved.tar --name app
  gaol run --image app --command -- ls /`,
		Args: usageArgs(cobra.ExactArgs(1)),
	}
	set := cmd.Flags()
	set.StringVar(&o.Name, "name", "", "`NAME` of the image, for --image")
	set.StringVar(&o.Platform, "platform", "", "`OS/ARCH` to choose from an image for several (default: this machine's)")
	set.BoolVar(&o.TrustNode, "trust-node", false, "allow the image's Node to run as root outside of jails, for --launcher zygote")
	set.Var(flags.Size(&o.Limits.Bytes), "max-size", "largest size of the image, such as 4g")
	set.Int64Var(&o.Limits.Entries, "max-entries", layer.DefaultEntries, "largest number `N` of files and folders")
	return storeCommand(cmd, rootfs.Open, func(cmd *cobra.Command, store *rootfs.Store, args []string) error {
		image, err := store.Import(cmd.Context(), args[0], o)
		if errors.Is(err, os.ErrPermission) && os.Geteuid() == 0 {
			return report.Advise(err, "import what root can read all of: a file system of the kernel's, such as /proc, is no image")
		}
		if err != nil {
			return err
		}
		return a.print(image.ID + "\n")
	})
}
