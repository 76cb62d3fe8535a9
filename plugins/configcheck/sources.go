// SPDX-License-Identifier: Apache-2.0

package configcheck

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientset "k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/carried"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/services"
)

const (
	// requestTimeout limits each request to the API server, which answers immediately if it can be reached.
	requestTimeout = 10 * time.Second
	// sourcesTimeout limits the check of one plugin's sources. Several of them may hang until their own timeouts.
	sourcesTimeout = 2 * time.Minute
	// defaultQPS is the default of clientConnection.qps, a binding each. nodesPerQPS nodes want one: then a third of the
	// pods, 30 on a node, is bound in 50 seconds.
	defaultQPS, nodesPerQPS = 50, 5
)

// source is a plugin of a profile that reads from a server.
type source struct {
	profile, plugin string
	checker         services.SourceChecker
}

// checkSources makes the plugins check their sources, and prints the results. Without such plugins, it sends no
// request.
func (c *checked) checkSources(out io.Writer) {
	if len(c.sources) == 0 {
		return
	}
	warn := func(format string, args ...interface{}) { fmt.Fprintf(out, "warning: "+format+"\n", args...) }
	nodes, err := c.nodes()
	if err != nil {
		warn("cannot list the nodes of the cluster, so it is unknown which of them a source has: %s; "+
			"next: run this where clientConnection.kubeconfig works, with an account that may list nodes", Lines(err)[0])
	}
	if qps := len(nodes) / nodesPerQPS; c.Config.ClientConnection.QPS == defaultQPS && qps > defaultQPS {
		fmt.Fprintf(out, "note: clientConnection.qps is %d, the default: the scheduler binds at most %[1]d pods per second, and the cluster has %d nodes; "+
			"next: set qps: %d and burst: %d, if the API server has room\n", defaultQPS, len(nodes), qps, 2*qps)
	}
	for _, source := range c.sources {
		fmt.Fprintf(out, "profile %s: the sources of %s\n", source.profile, source.plugin)
		ctx, cancel := context.WithTimeout(context.Background(), sourcesTimeout)
		var found strings.Builder
		err := source.check(ctx, nodes, &found)
		cancel()
		if found.Len() > 0 {
			text := strings.TrimSuffix(found.String(), "\n")
			fmt.Fprintf(out, "  %s\n", strings.ReplaceAll(text, "\n", "\n  "))
		}
		if err != nil {
			for _, line := range Lines(err) {
				warn("profile %s: %s: %s", source.profile, source.plugin, line)
			}
		}
	}
}

// checkCarried prints a warning for each CustomResourceDefinition that an enabled third-party plugin needs and the API
// server does not have.
func (c *checked) checkCarried(out io.Writer) {
	names := map[string]bool{}
	for _, p := range c.profiles {
		for _, name := range p.enabled.Names() {
			names[name] = true
		}
	}
	for _, line := range carried.Missing(names, c.kubeConfig) {
		fmt.Fprintln(out, "warning:", line)
	}
}

// check calls CheckSources. A panic becomes an error: the other sources are still checked, and the configuration stays
// valid.
func (s source) check(ctx context.Context, nodes []*v1.Node, out io.Writer) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fmt.Errorf("panic: %v; next: report this as a bug of the plugin, with the stack from the log", problem)
			klog.ErrorS(err, "Check of a plugin's sources panicked", "plugin", s.plugin, "stack", string(debug.Stack()))
		}
	}()
	return s.checker.CheckSources(ctx, nodes, out)
}

// nodes lists the nodes of the cluster with the scheduler's own credentials.
func (s Start) nodes() ([]*v1.Node, error) {
	kubeConfig, err := s.kubeConfig()
	if err != nil {
		return nil, err
	}
	client, err := clientset.NewForConfig(kubeConfig)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	nodes := make([]*v1.Node, 0, len(list.Items))
	for i := range list.Items {
		nodes = append(nodes, &list.Items[i])
	}
	return nodes, nil
}

func (s Start) kubeConfig() (*restclient.Config, error) {
	kubeconfig := s.Config.ClientConnection.Kubeconfig
	var kubeConfig *restclient.Config
	var err error
	if kubeconfig == "" && s.Master == "" {
		kubeConfig, err = restclient.InClusterConfig()
	} else {
		kubeConfig, err = clientcmd.BuildConfigFromFlags(s.Master, kubeconfig)
	}
	if err != nil {
		return nil, err
	}
	kubeConfig.Timeout = requestTimeout
	return kubeConfig, nil
}
