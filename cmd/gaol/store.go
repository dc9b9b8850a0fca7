package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/jail"
	"gaol/rootfs"
	"gaol/rootfs/tree"
	"gaol/runtime/snippets"
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

// tagCommand adds names to images or snapshots.
func (a *app) tagCommand(kind string, open flags.Opener) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tag NAME NEWNAME...",
		Short: "Add names to " + kind,
		Long: "Add names to " + kind + `. NAME is a name, an id or an id's unique prefix. Each NEWNAME is printed
with the id. If it was a name of another one, it moves, and its line ends with the other's id.`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: flags.StoreNames(open),
	}
	return storeCommand(cmd, open, func(cmd *cobra.Command, store *rootfs.Store, args []string) error {
		for _, name := range args[1:] {
			i, moved, err := store.Tag(cmd.Context(), args[0], name)
			if err != nil {
				return err
			}
			line := name + "  " + i.ID
			if moved != "" {
				line += "  moved from " + moved
			}
			if err := a.print(line + "\n"); err != nil {
				return err
			}
		}
		return nil
	})
}

// exportCommand completes cmd, which writes an archive of an image or a snapshot to standard output.
func (a *app) exportCommand(cmd *cobra.Command, open flags.Opener, write func(ctx context.Context, w io.Writer, store *rootfs.Store, ref string) error) *cobra.Command {
	cmd.Use, cmd.Args, cmd.ValidArgsFunction = "export NAME", cobra.ExactArgs(1), flags.StoreNames(open)
	return storeCommand(cmd, open, func(cmd *cobra.Command, store *rootfs.Store, args []string) error {
		if report.IsTerminal(a.stdout) {
			return errors.New("standard output is a terminal: redirect the archive to a pipe or a file")
		}
		return write(cmd.Context(), archiveOutput{a.stdout}, store, args[0])
	})
}

// archiveOutput writes an archive to standard output, and distinguishes its errors from errors of the store.
type archiveOutput struct{ io.Writer }

func (o archiveOutput) Write(p []byte) (n int, err error) {
	if n, err = o.Writer.Write(p); err != nil {
		err = report.NewOutputError("standard output", err)
	}
	return n, err
}

// removedLong describes the output of rm and prune.
const removedLong = `

Each line of output is an id that was removed, or a name whose image stays, and the disk
space that this has freed.`

// pruneCommand removes images or snapshots without names.
func (a *app) pruneCommand(kind, details string, open flags.Opener) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove all " + kind + " that have no name",
		Long:  "Remove all " + kind + " that have no name and are not in use.\n\n" + details + removedLong,
	}
	return storeCommand(cmd, open, func(_ *cobra.Command, store *rootfs.Store, _ []string) error {
		removed, err := store.Prune()
		return errors.Join(err, a.printRemoved(removed...))
	})
}

func (a *app) printRemoved(removed ...rootfs.Removed) (err error) {
	for _, r := range removed {
		err = cmp.Or(err, a.print(fmt.Sprintf("%s  freed %.1f MB\n", r.Ref, float64(r.Freed)/1e6)))
	}
	return err
}

// removeCommand removes images or snapshots.
func (a *app) removeCommand(short, details string, open flags.Opener) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "rm NAME...",
		Aliases:           []string{"remove"},
		Short:             short,
		Long:              short + ".\n\n" + details + removedLong,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: flags.StoreNames(open),
	}
	return storeCommand(cmd, open, func(_ *cobra.Command, store *rootfs.Store, refs []string) error {
		for _, ref := range refs {
			removed, err := store.Remove(ref)
			if err == nil {
				err = a.printRemoved(removed)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

const duLong = `Print how much space gaol's folders take on the disk: state of sandboxes, the server's
cache, and the folders of the store, such as images, snapshots, disks of sandboxes, and downloads,
which may be deleted. Holes in files take none, and a file with several links counts in the first
folder that has it. Files of sandboxes in memory do not count.`

// duCommand prints how much space gaol's folders take.
func (a *app) duCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "du", Short: "Print how much space gaol takes on the disk", Long: duLong}
	asJSON := cmd.Flags().Bool("json", false, "print one JSON object: bytes, and the bytes of each of the folders")
	return storeCommand(cmd, rootfs.Open, func(_ *cobra.Command, store *rootfs.Store, _ []string) error {
		if _, err := store.Snapshots(); err != nil { // a named store is missing
			return err
		}
		entries, err := os.ReadDir(store.Dir())
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		paths := []string{jail.DefaultStateDir, snippets.ServerCache}
		for _, e := range entries {
			if e.IsDir() {
				paths = append(paths, filepath.Join(store.Dir(), e.Name()))
			}
		}
		used, total, folders := tree.Usage{}, int64(0), map[string]int64{}
		lines := []string{"SIZE\tPATH"}
		for _, path := range paths {
			if folders[path], _, err = used.Add(path); err != nil {
				return err
			}
			total += folders[path]
			lines = append(lines, fmt.Sprintf("%.1f MB\t%s", float64(folders[path])/1e6, path))
		}
		lines = append(lines, fmt.Sprintf("%.1f MB\ttotal", float64(total)/1e6))
		return a.printEither(*asJSON, map[string]any{"bytes": total, "folders": folders}, report.Table(lines))
	})
}

// storeDamaged is the exit status of gaol image verify if an image differs from its id.
const storeDamaged = 1

// shownDifferences is how many differences of an image are printed.
const shownDifferences = 20

const verifyLong = `All files are read. Files that were added, removed or changed are printed, the first
20 of each: content, mode, owner, type, targets of links, extended attributes. Times are
not compared. A folder that was added or removed counts as one difference.

Exit status: 0 if all are unchanged, 1 if any has changed, 125 if gaol failed.`

// verifyCommand compares images or snapshots with their ids.
func (a *app) verifyCommand(kind, cure string, open flags.Opener) *cobra.Command {
	short := "Compare the files of " + kind + " with their ids"
	cmd := &cobra.Command{
		Use:               "verify [NAME...]",
		Short:             short,
		Long:              short + ". Without a NAME, all are compared.\n\n" + verifyLong + "\n\n" + cure,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: flags.StoreNames(open),
	}
	return storeCommand(cmd, open, func(cmd *cobra.Command, store *rootfs.Store, refs []string) error {
		var images []*rootfs.Image
		var err error
		if len(refs) == 0 {
			images, err = store.List()
		}
		for _, ref := range refs {
			i, failed := store.Lookup(ref)
			images, err = append(images, i), errors.Join(err, failed)
		}
		if err != nil {
			return err
		}
		for _, i := range images {
			if err := a.verify(cmd.Context(), i, len(refs) == 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// verify prints how an image differs from its id. If mayBeGone, it prints nothing for an image
// that was removed after it was listed.
func (a *app) verify(ctx context.Context, i *rootfs.Image, mayBeGone bool) error {
	found, err := i.Verify(ctx, rootfs.VerifyOptions{})
	result := "unchanged"
	switch {
	case errors.Is(err, rootfs.ErrRecord):
		a.exit, result = storeDamaged, errors.Unwrap(err).Error()
	case mayBeGone && errors.Is(err, rootfs.ErrNotFound):
		return nil
	case err != nil:
		return err
	case len(found) > 0:
		a.exit, result = storeDamaged, fmt.Sprintf("differences: %d", len(found))
	}
	lines := []string{fmt.Sprintf("%.*s  %s", shortID, i.ID, strings.Join(append(i.Names, result), "  "))}
	for _, d := range found[:min(len(found), shownDifferences)] {
		lines = append(lines, fmt.Sprintf("  %s\t%s\t%s", d.Change, flags.QuoteUnsafe(d.Path), values(d)))
	}
	if more := len(found) - shownDifferences; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return a.print(report.Table(lines))
}

// values describes the old and the new value.
func values(d rootfs.Difference) string {
	want, got := flags.QuoteUnsafe(d.Want), flags.QuoteUnsafe(d.Got)
	if d.Change == tree.Content {
		want, got = "sha256:"+want, "sha256:"+got
	}
	switch {
	case d.Want == "":
		return got
	case d.Got == "":
		return "was " + want
	}
	return "was " + want + ", is " + got
}

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
		return s.Tar(w)
	})
}
