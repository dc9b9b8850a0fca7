package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gaol/rootfs"
	"gaol/vfs/hostfs"
)

const snapshotLong = `A snapshot is what a guest's own folders held: the home folder, /workspace and
the working directory. gaol run --save NAME takes one when the program has
ended, gaol run --snapshot NAME begins with one, in a moment and without
copying it. Snapshots live in the store beside the images, by the hash of their
content: equal ones are one, with several names. When a name is given anew, what
had it stays without, until gaol snapshot prune.`

func (a *app) snapshotCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "List, export, remove and prune snapshots",
		Long:  snapshotLong,
		Args:  usageArgs(noArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.snapshotList(), a.snapshotExport(), a.snapshotRemove(), a.snapshotPrune())
	return cmd
}

func openSnapshots(dir string) (*rootfs.Store, error) {
	store, err := rootfs.Open(dir)
	if err != nil {
		return nil, err
	}
	return store.Snapshots()
}

func (a *app) snapshotList() *cobra.Command {
	return a.storeList("List the snapshots of the store", openSnapshots, snapshotTable)
}

func snapshotTable(all []*rootfs.Image) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ID\tSIZE\tCREATED\tNAMES")
	for _, s := range all {
		fmt.Fprintf(w, "%.*s\t%.1f MB\t%s\t%s\n", shortID, s.ID, float64(s.Size)/1e6, s.Created.Local().Format(time.DateTime), strings.Join(s.Names, " "))
	}
	_ = w.Flush() // it writes to memory
	return text.String()
}

func (a *app) snapshotExport() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:               "export NAME",
		Short:             "Write a snapshot's files as a tar archive to standard output",
		Example:           `  gaol snapshot export built | tar -t`,
		Args:              usageArgs(cobra.ExactArgs(1)),
		ValidArgsFunction: completer(openSnapshots),
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := openSnapshots(dir)
			if err != nil {
				return err
			}
			s, err := store.Lookup(args[0])
			if err != nil {
				return err
			}
			return a.export(s)
		},
	}
	addStoreFlag(cmd, &dir)
	return cmd
}

func (a *app) export(s *rootfs.Image) error {
	if isTerminal(a.stdout) {
		return errors.New("standard output is a terminal: an archive is for a pipe, or a file")
	}
	lease, err := s.Hold()
	if err != nil {
		return err
	}
	defer func() { _ = lease.Close() }()
	root, err := os.OpenFile(s.Root(), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	tree, err := hostfs.New(root, hostfs.Options{Limits: hostfs.Limits{Entries: 1 << 30, Depth: 1 << 30}})
	if err != nil {
		root.Close()
		return err
	}
	defer func() { _ = tree.Close() }()
	_, err = tree.Tar(a.stdout, "/", hostfs.TarOptions{Bytes: 1 << 50})
	return err
}

func (a *app) snapshotRemove() *cobra.Command {
	return a.storeRemove("Remove snapshots, by name, id or an id's unique prefix", `Remove snapshots, by name, id or an id's unique prefix.

A NAME goes, and what it names with it when that has no other name. An id goes
with all its names. A snapshot that a runtime was made of stays while that is open.`, openSnapshots)
}

func (a *app) snapshotPrune() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove all snapshots that have no name",
		Long: `Remove all snapshots that have no name and that no runtime is made of, and print
their ids. A snapshot is without a name when it was taken so, through the SDK, or
when a later one took its name.`,
		Args: usageArgs(noArgs),
		RunE: func(*cobra.Command, []string) error {
			store, err := openSnapshots(dir)
			if err != nil {
				return err
			}
			ids, err := store.Prune()
			for _, id := range ids {
				err = errors.Join(err, a.print(id+"\n"))
			}
			return err
		},
	}
	addStoreFlag(cmd, &dir)
	return cmd
}
