// Package zzdeps keeps requirements in go.mod until the packages that need them are written. Temporary.
package zzdeps

import (
	_ "github.com/spdx/tools-golang/json"
	_ "github.com/spdx/tools-golang/spdx/v2/v2_3"
	_ "google.golang.org/grpc"
	_ "k8s.io/client-go/informers"
	_ "k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "k8s.io/cri-api/pkg/apis/runtime/v1"
	_ "k8s.io/kube-scheduler/config/v1beta2"
	_ "k8s.io/kube-scheduler/config/v1beta3"
	_ "k8s.io/kubelet/config/v1beta1"
	_ "k8s.io/apiserver/pkg/apis/audit/v1"
	_ "sigs.k8s.io/kustomize/kyaml/kio"
	_ "sigs.k8s.io/kustomize/kyaml/yaml"
	_ "sigs.k8s.io/kustomize/kyaml/yaml/merge2"
	_ "k8s.io/klog/v2"
	_ "github.com/spf13/pflag"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/term"
)
