package flags

import (
	"github.com/spf13/cobra"

	"gaol/rootfs"
)

// Opener opens the images of a store, or its snapshots.
type Opener func(dir string) (*rootfs.Store, error)

// AddStore defines --store.
func AddStore(cmd *cobra.Command, dir *string) {
	cmd.Flags().Var(Text(dir), "store", "`DIR` of the image store (default /var/lib/gaol)")
}

// AddImage defines --image.
func AddImage(cmd *cobra.Command, image *string) {
	cmd.Flags().Var(Text(image), "image", "`NAME` or id of the image (default: the default image, built if missing)")
	Complete(cmd, "image", StoreNames(rootfs.Open))
}

// StoreNames completes the names in a store for a shell, which filters them. A user without
// access to the store gets an error and not the files of the working directory.
func StoreNames(open Opener) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		dir, _ := cmd.Flags().GetString("store")
		store, err := open(dir)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		images, err := store.List()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, i := range images {
			names = append(names, i.Names...)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
