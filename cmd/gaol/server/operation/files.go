package operation

import (
	"net/http"

	"gaol/cmd/gaol/server/service"
)

const (
	filesPath = "/v1/sandboxes/{id}/files"

	// Octets and Tar are media types.
	Octets = "application/octet-stream"
	Tar    = "application/x-tar"
)

func files() []*Operation {
	all := []*Operation{
		ofSandbox(Operation{
			Name: "readFile", Method: http.MethodGet, Path: filesPath, Download: Octets,
			Summary: "Read a file, or a range of it",
			Doc:     "Returns the bytes of a file. A Range header selects a part.",
		}, (*service.Sandbox).ReadFile),
		ofSandbox(Operation{
			Name: "writeFile", Method: http.MethodPut, Path: filesPath, Upload: []string{Octets},
			Summary: "Write a file",
			Doc:     "Writes a file from the bytes of the request, and replaces an existing one. It appears when all of it has been written.",
		}, (*service.Sandbox).WriteFile),
		ofSandbox(Operation{
			Name: "removeFile", Method: http.MethodDelete, Path: filesPath,
			Summary: "Remove a file or a folder",
			Doc:     "Removes a file, an empty folder or, if recursive is true, a folder with its content.",
		}, (*service.Sandbox).Remove),
		ofSandbox(Operation{
			Name: "statFile", Method: http.MethodGet, Path: filesPath + "/stat",
			Summary: "Describe a file",
			Doc:     "Describes the file that a path leads to or, if links is true, the link.",
		}, (*service.Sandbox).Stat),
		ofSandbox(Operation{
			Name: "listFiles", Method: http.MethodGet, Path: filesPath + "/list",
			Summary: "List a folder",
			Doc:     "Lists the entries of a folder or, if recursive is true, of all folders below it.",
		}, (*service.Sandbox).ListFiles),
		ofSandbox(Operation{
			Name: "makeFolder", Method: http.MethodPost, Path: filesPath + "/folder",
			Summary: "Make a folder",
			Doc:     "Makes a folder and, if createParents is true, its parents.",
		}, (*service.Sandbox).MakeFolder),
		ofSandbox(Operation{
			Name: "moveFile", Method: http.MethodPost, Path: filesPath + "/move",
			Summary: "Move a file or a folder",
			Doc:     "Renames a file, a folder or a link.",
		}, (*service.Sandbox).Move),
		ofSandbox(Operation{
			Name: "packFolder", Method: http.MethodGet, Path: filesPath + "/tar", Download: Tar, Trailer: "Gaol-Skipped",
			Summary: "Download the content of a folder as a tar archive",
			Doc:     "Returns the files, folders and links below a folder as a tar archive. The archive is written while it is sent.",
		}, (*service.Sandbox).Tar),
		ofSandbox(Operation{
			Name: "unpackFolder", Method: http.MethodPut, Path: filesPath + "/tar", Upload: []string{Tar, Octets},
			Summary: "Unpack a tar archive into a folder",
			Doc:     "Unpacks regular files, folders and links of a tar archive that is not compressed. They must stay in the folder.",
		}, (*service.Sandbox).Untar),
	}
	for _, o := range all {
		o.Query = true
	}
	return all
}
