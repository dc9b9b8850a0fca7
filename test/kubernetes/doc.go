// Package kubernetes tests deploy/kubernetes and the container image of make container.
//
//	manifests_test.go  the files, without a cluster
//	container_test.go  the archive of .ci/container
//	image_test.go      the worker of the image in a folder: make test-kubernetes
//	api_test.go        an API server accepts the objects: make test-kubernetes
//	node_test.go       a kubelet, a container runtime and what they need, in namespaces
//	cluster_test.go    the objects on a node, as docs/kubernetes.md installs them: make test-kubernetes
package kubernetes
