// The generator of Kubernetes 1.23, for the plugins' argument types (scripts/update-generated.sh). A module of its own,
// so that its old dependencies do not meet the build tools' new ones.
module kube-scheduler-fork/build/pins/code-generator

go 1.26.0

tool k8s.io/code-generator/cmd/deepcopy-gen

require (
	github.com/go-logr/logr v1.2.0 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
	golang.org/x/mod v0.6.0-dev.0.20220419223038-86c51ed26bb4 // indirect
	golang.org/x/sys v0.5.0 // indirect
	golang.org/x/tools v0.1.12 // indirect
	k8s.io/code-generator v0.23.17 // indirect
	k8s.io/gengo v0.0.0-20210813121822-485abfe95c7c // indirect
	k8s.io/klog/v2 v2.30.0 // indirect
)
