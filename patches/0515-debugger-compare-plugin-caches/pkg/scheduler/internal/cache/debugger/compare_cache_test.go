// SPDX-License-Identifier: Apache-2.0

package debugger

import (
	"bytes"
	"flag"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	internalcache "k8s.io/kubernetes/pkg/scheduler/internal/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/internal/queue"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestCompareCache checks that plugins get the nodes of the cache, and that their differences are logged.
func TestCompareCache(t *testing.T) {
	stop := make(chan struct{})
	defer close(stop)
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	cache := internalcache.New(time.Minute, stop)
	cache.AddNode(st.MakeNode().Name("node-1").Obj())
	var compared []string
	comparer := CacheComparer{
		NodeLister: factory.Core().V1().Nodes().Lister(), PodLister: factory.Core().V1().Pods().Lister(),
		Cache: cache, PodQueue: internalqueue.NewSchedulingQueue(nil, factory),
		PluginDifferences: func(nodes map[string]*framework.NodeInfo) []string {
			for name := range nodes {
				compared = append(compared, name)
			}
			return []string{"node-1 has no such count"}
		},
	}

	var log bytes.Buffer
	flags := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(flags)
	flags.Set("logtostderr", "false")
	klog.SetOutput(&log)
	defer func() {
		klog.SetOutput(nil)
		flags.Set("logtostderr", "true")
	}()
	if err := comparer.Compare(); err != nil {
		t.Fatal(err)
	}
	klog.Flush()
	if len(compared) != 1 || compared[0] != "node-1" {
		t.Errorf("compared the nodes %v, want those of the cache", compared)
	}
	if !strings.Contains(log.String(), "node-1 has no such count") {
		t.Errorf("the difference is not in the log:\n%s", log.String())
	}
}
