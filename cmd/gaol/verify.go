package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"gaol/cmd/gaol/flags"
	"gaol/cmd/gaol/report"
	"gaol/rootfs"
	"gaol/rootfs/tree"
)

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
