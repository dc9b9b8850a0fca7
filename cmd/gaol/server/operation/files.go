package operation

import (
	"context"
	"net/http"
	"strconv"

	"gaol/cmd/gaol/server/service"
	"gaol/runtime/requestjson"
	"gaol/runtime/resultjson"
)

// packed counts the files that an archive lacks.
type packed struct {
	Skipped int `json:"skipped" doc:"Files that the archive lacks."`
}

// String returns the number, for a trailer.
func (p packed) String() string { return strconv.Itoa(p.Skipped) }

const (
	filesPath = "/v1/sandboxes/{id}/files"

	// Octets and Tar are media types.
	Octets = "application/octet-stream"
	Tar    = "application/x-tar"
)

// fileErrors are the statuses of errors that operations on files have.
var fileErrors = []int{http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage}

// uploadErrors are the additional statuses of operations that carry data.
var uploadErrors = []int{http.StatusRequestTimeout, http.StatusUnsupportedMediaType}

// defineFile completes the description of an operation on a file.
func defineFile[In, Out any](o Operation, do func(context.Context, *Call, *service.Sandbox, string, *In) (Out, error)) *Operation {
	o.Tag, o.Query, o.Errors = "files", true, append(o.Errors, fileErrors...)
	return defineIn(o, func(ctx context.Context, c *Call, sb *service.Sandbox, in *In) (out Out, err error) {
		path, err := any(in).(interface{ FilePath() (string, error) }).FilePath()
		if err != nil {
			return out, service.Refuse(service.Invalid, "%w", err)
		}
		return do(ctx, c, sb, path, in)
	})
}

func files() []*Operation {
	return []*Operation{
		defineFile(Operation{
			Name: "readFile", Method: http.MethodGet, Path: filesPath, Download: Octets,
			Errors:  []int{http.StatusRequestedRangeNotSatisfiable, http.StatusPreconditionFailed},
			Summary: "Read a file, or a range of it",
			Doc:     "Returns the bytes of a file. A Range header selects a part.",
		}, func(_ context.Context, c *Call, sb *service.Sandbox, path string, in *requestjson.ReadIn) (*resultjson.FileInfo, error) {
			return sb.ReadFile(path, in, c.Download)
		}),
		defineFile(Operation{
			Name: "writeFile", Method: http.MethodPut, Path: filesPath, Upload: []string{Octets}, Errors: uploadErrors,
			Summary: "Write a file",
			Doc:     "Writes a file from the bytes of the request, and replaces an existing one. It appears when all of it has been written.",
		}, writeFile),
		defineFile(Operation{
			Name: "removeFile", Method: http.MethodDelete, Path: filesPath,
			Summary: "Remove a file or a folder",
			Doc:     "Removes a file, an empty folder or, if recursive is true, a folder with its content.",
		}, func(_ context.Context, _ *Call, sb *service.Sandbox, path string, in *requestjson.RemoveIn) (none, error) {
			return none{}, sb.Remove(path, in)
		}),
		defineFile(Operation{
			Name: "statFile", Method: http.MethodGet, Path: filesPath + "/stat",
			Summary: "Describe a file",
			Doc:     "Describes the file that a path leads to or, if links is true, the link.",
		}, func(_ context.Context, _ *Call, sb *service.Sandbox, path string, in *requestjson.StatIn) (*resultjson.FileInfo, error) {
			return sb.Stat(path, in)
		}),
		defineFile(Operation{
			Name: "listFiles", Method: http.MethodGet, Path: filesPath + "/list",
			Summary: "List a folder",
			Doc:     "Lists the entries of a folder or, if recursive is true, of all folders below it.",
		}, func(ctx context.Context, _ *Call, sb *service.Sandbox, path string, in *requestjson.ListIn) (*service.FileList, error) {
			return sb.ListFiles(ctx, path, in)
		}),
		defineFile(Operation{
			Name: "makeFolder", Method: http.MethodPost, Path: filesPath + "/folder",
			Summary: "Make a folder",
			Doc:     "Makes a folder and, if createParents is true, its parents.",
		}, func(_ context.Context, _ *Call, sb *service.Sandbox, path string, in *requestjson.FolderIn) (none, error) {
			return none{}, sb.MakeFolder(path, in)
		}),
		defineIn(Operation{
			Name: "moveFile", Tag: "files", Method: http.MethodPost, Path: filesPath + "/move", Query: true, Errors: fileErrors,
			Summary: "Move a file or a folder",
			Doc:     "Renames a file, a folder or a link.",
		}, moveFile),
		defineFile(Operation{
			Name: "packFolder", Method: http.MethodGet, Path: filesPath + "/tar", Download: Tar, Trailer: "Gaol-Skipped",
			Summary: "Download the content of a folder as a tar archive",
			Doc:     "Returns the files, folders and links below a folder as a tar archive. The archive is written while it is sent.",
		}, func(_ context.Context, c *Call, sb *service.Sandbox, path string, _ *requestjson.InFile) (packed, error) {
			report, err := sb.Tar(c.Download, path)
			return packed{report.Skipped}, err
		}),
		defineFile(Operation{
			Name: "unpackFolder", Method: http.MethodPut, Path: filesPath + "/tar", Upload: []string{Tar, Octets}, Errors: uploadErrors,
			Summary: "Unpack a tar archive into a folder",
			Doc:     "Unpacks regular files, folders and links of a tar archive that is not compressed. They must stay in the folder.",
		}, func(ctx context.Context, c *Call, sb *service.Sandbox, path string, in *requestjson.UnpackIn) (out resultjson.Unpacked, err error) {
			data, err := c.Upload(ctx, sb.MaxUpload())
			if err != nil {
				return out, err
			}
			return sb.Untar(data, path, in)
		}),
	}
}

func writeFile(ctx context.Context, c *Call, sb *service.Sandbox, path string, in *requestjson.WriteIn) (*resultjson.FileInfo, error) {
	data, err := c.Upload(ctx, sb.MaxUpload())
	if err != nil {
		return nil, err
	}
	if _, err := sb.WriteFile(path, data, in); err != nil {
		return nil, err
	}
	return sb.Stat(path, &requestjson.StatIn{})
}

func moveFile(_ context.Context, _ *Call, sb *service.Sandbox, in *requestjson.MoveIn) (none, error) {
	from, err := requestjson.ExactPath("from", in.From, in.FromBytes)
	if err != nil {
		return none{}, service.Refuse(service.Invalid, "%w", err)
	}
	to, err := requestjson.ExactPath("to", in.To, in.ToBytes)
	if err != nil {
		return none{}, service.Refuse(service.Invalid, "%w", err)
	}
	return none{}, sb.Move(from, to)
}
