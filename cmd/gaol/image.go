package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gaol/rootfs"
)

const imageLong = `An image is the root file system that guests see read-only: Node, npm, a shell
and the usual small tools. Images live in a store, by the hash of their content.

gaol run builds the default image itself where it is missing. Others are built with
another Node, or imported from where container images are kept.`

func (a *app) imageCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "List, build, import and remove images",
		Long:  imageLong,
		Args:  usageArgs(noArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.imageList(), a.imageBuild(), a.imageImport(), a.imageRemove())
	return cmd
}

func (a *app) imageList() *cobra.Command {
	return a.storeList("List the images of the store", rootfs.Open, imageTable)
}

const buildLong = `Build an image and print its id on standard output.

Node and npm come from the npm registry that npm_config_registry names, through
the proxy that the environment names, and are checked against known hashes. An
image whose content the store has already is not stored twice.

bash, git, curl, jq, tar, unzip, fontconfig with the DejaVu fonts, time zones and CA
certificates are Debian packages. apt-get downloads them from the sources that this
machine has configured, and checks them; the first time that is 40 MB. Their versions
and hashes are in the image's image.json. Nothing is installed on this machine, and no
maintainer script is run. git lacks the commands that are written in Perl, such as
send-email and svn. The other tools of the shell are busybox's.

  default          Node, npm, and the programs above      193 MB
  --with python3   also Python with its standard library  216 MB
  --minimal        Node, npm and busybox, without apt     149 MB

The images of the last two are called python3 and minimal, for --image.`

func (a *app) imageBuild() *cobra.Command {
	var dir string
	o := rootfs.BuildOptions{Progress: a.stderr}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build an image and print its id",
		Long:  buildLong,
		Example: `  gaol image build
  gaol image build --node 22 --name old
  gaol image build --with python3 && gaol run --image python3 --command -- python3 -V`,
		Args: usageArgs(noArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := rootfs.Open(dir)
			if err != nil {
				return err
			}
			image, err := store.Build(cmd.Context(), o)
			if err != nil {
				return err
			}
			return a.print(image.ID + "\n")
		},
	}
	cmd.Flags().StringVar(&o.NodeVersion, "node", "", "`VERSION` of Node, such as 22 or 24.21.0 (default "+rootfs.DefaultNode+")")
	cmd.Flags().BoolVar(&o.Minimal, "minimal", false, "leave out all Debian packages")
	cmd.Flags().StringSliceVar(&o.With, "with", nil, "`PROGRAM` to add: python3")
	cmd.Flags().StringVar(&o.Name, "name", "", "one more `NAME` for the image, for --image")
	addStoreFlag(cmd, &dir)
	return cmd
}

func (a *app) imageRemove() *cobra.Command {
	return a.storeRemove("Remove images, by name, id or an id's unique prefix", `Remove images, by name, id or an id's unique prefix.

A NAME goes, and the image with it when it has no other name but the one like
node24.21.0-23ed74ce174b, which every build gives. An id goes with all its names.
An image that is in use stays.`, rootfs.Open)
}

// opener opens the images of a store, or its snapshots.
type opener func(dir string) (*rootfs.Store, error)

func (a *app) storeRemove(short, long string, open opener) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:               "rm NAME...",
		Aliases:           []string{"remove"},
		Short:             short,
		Long:              long,
		Args:              usageArgs(cobra.MinimumNArgs(1)),
		ValidArgsFunction: completer(open),
		RunE: func(_ *cobra.Command, refs []string) error {
			store, err := open(dir)
			if err != nil {
				return err
			}
			for _, ref := range refs {
				if err := store.Remove(ref); err != nil {
					return err
				}
			}
			return nil
		},
	}
	addStoreFlag(cmd, &dir)
	return cmd
}

// storeList lists what a store has.
func (a *app) storeList(short string, open opener, table func([]*rootfs.Image) string) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   short,
		Args:    usageArgs(noArgs),
		RunE: func(*cobra.Command, []string) error {
			store, err := open(dir)
			if err != nil {
				return err
			}
			all, err := store.List()
			if err != nil {
				return err
			}
			return a.print(table(all))
		},
	}
	addStoreFlag(cmd, &dir)
	return cmd
}

// print writes text to standard output.
func (a *app) print(text string) error {
	if _, err := fmt.Fprint(a.stdout, text); err != nil {
		return newOutputError("standard output", err)
	}
	return nil
}

// shortID is as much of an id as people can tell images apart by.
const shortID = len("sha256:") + 12

func imageTable(images []*rootfs.Image) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ID\tNODE\tARCH\tSIZE\tCREATED\tNAMES")
	for _, i := range images {
		i.Node = cmp.Or(i.Node, "-")
		fmt.Fprintf(w, "%.*s\t%s\t%s\t%.0f MB\t%s\t%s\n", shortID, i.ID, i.Node, i.Arch,
			float64(i.Size)/1e6, i.Created.Local().Format(time.DateTime), strings.Join(i.Names, " "))
	}
	_ = w.Flush() // it writes to memory
	return text.String()
}

// completer completes a name of a store for a shell.
func completer(open opener) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
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
		names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
