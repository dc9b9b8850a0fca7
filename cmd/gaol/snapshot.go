package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"gaol/rootfs"
	"gaol/vfs/hostfs"
)

const snapshotLong = `A snapshot is the content of a guest's own folders: the home folder, /workspace
and the working directory. gaol run --save NAME takes one when the program has ended.
gaol run --snapshot NAME starts from one without copying it. Snapshots are
kept in the store beside the images, by the hash of their content: equal ones are stored
once, with several names. A snapshot whose name is given to another one stays without a name
until gaol snapshot prune.`

func (a *app) snapshotCommand() *cobra.Command {
	list := a.listCommand("List the snapshots of the store", rootfs.OpenSnapshots, "ID\tSIZE\tCREATED\tNAMES", func(s *rootfs.Image) string {
		return fmt.Sprintf("%.*s\t%.1f MB\t%s\t%s", shortID, s.ID, float64(s.Size)/1e6, s.Created.Local().Format(time.DateTime), strings.Join(s.Names, " "))
	})
	remove := a.removeCommand("Remove snapshots, by name, id or an id's unique prefix", `A NAME is removed, and its snapshot with it unless that has another name. An id is
removed with all its names. A snapshot that an open runtime uses cannot be removed.`, rootfs.OpenSnapshots)
	verify := a.verifyCommand("snapshots", `A changed snapshot can't be repaired: restore it from a backup of the store.`, rootfs.OpenSnapshots)
	tag := a.tagCommand("snapshots", rootfs.OpenSnapshots)
	prune := a.pruneCommand("snapshots", `A snapshot is without a name if it was taken without one, through the SDK,
or if a later one took its name.`, rootfs.OpenSnapshots)
	return group("snapshot", "List, export, tag, verify, remove and prune snapshots", snapshotLong, list, a.snapshotExport(), tag, verify, remove, prune)
}

func (a *app) snapshotExport() *cobra.Command {
	cmd := &cobra.Command{
		Short:   "Write a snapshot's files as a tar archive to standard output",
		Example: `  gaol snapshot export built | tar -t`,
	}
	return a.exportCommand(cmd, rootfs.OpenSnapshots, func(_ context.Context, w io.Writer, store *rootfs.Store, ref string) error {
		s, err := store.Lookup(ref)
		if err != nil {
			return err
		}
		lease, err := s.Hold() // keeps s from being removed
		if err != nil {
			return err
		}
		defer func() { _ = lease.Close() }()
		root, err := os.OpenFile(s.Root(), unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return err
		}
		// It is not limited: the snapshot was when it was taken.
		tree, err := hostfs.New(root, hostfs.Options{Limits: hostfs.Limits{Entries: 1 << 30, Depth: 1 << 30}})
		if err != nil {
			root.Close()
			return err
		}
		defer func() { _ = tree.Close() }()
		_, err = tree.Tar(w, "/", hostfs.TarOptions{Bytes: 1 << 50})
		return err
	})
}
