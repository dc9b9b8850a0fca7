package main

import (
	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/rootfs"
)

// storeCommand adds --store to cmd, and makes it do something with the images that open
// opens, or with the snapshots.
func storeCommand(cmd *cobra.Command, open flags.Opener, do func(cmd *cobra.Command, store *rootfs.Store, args []string) error) *cobra.Command {
	var dir string
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		store, err := open(dir)
		if err != nil {
			return err
		}
		return do(cmd, store, args)
	}
	flags.AddStore(cmd, &dir)
	return cmd
}

// listCommand lists images or snapshots as a table.
func (a *app) listCommand(short string, open flags.Opener, header string, row func(*rootfs.Image) string) *cobra.Command {
	cmd := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: short}
	return storeCommand(cmd, open, func(_ *cobra.Command, store *rootfs.Store, _ []string) error {
		all, err := store.List()
		if err != nil {
			return err
		}
		lines := []string{header}
		for _, image := range all {
			lines = append(lines, row(image))
		}
		return a.print(report.Table(lines))
	})
}

// shortID is how much of an id tables show: enough for people to distinguish images.
const shortID = len("sha256:") + 12

// removeCommand removes images or snapshots.
func removeCommand(short, details string, open flags.Opener) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "rm NAME...",
		Aliases:           []string{"remove"},
		Short:             short,
		Long:              short + ".\n\n" + details,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: flags.StoreNames(open),
	}
	return storeCommand(cmd, open, func(_ *cobra.Command, store *rootfs.Store, refs []string) error {
		for _, ref := range refs {
			if err := store.Remove(ref); err != nil {
				return err
			}
		}
		return nil
	})
}
