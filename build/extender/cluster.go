// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// byNode is the index of the pods by the node that they are bound to.
const byNode = "node"

// cluster is what is known of the cluster by watching it: its nodes, and the pods that are bound and have not ended.
// Pods that the scheduler has only just placed are not among them before their binding is seen.
type cluster struct {
	nodes corelisters.NodeLister
	pods  cache.Indexer
	// synced are the informers that must have seen all that there is.
	synced []cache.InformerSynced
}

// newInformerFactory makes informers of which the one for pods leaves out those that have ended, as the scheduler's
// does.
func newInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(client, 0)
	factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		running := fmt.Sprintf("status.phase!=%s,status.phase!=%s", corev1.PodSucceeded, corev1.PodFailed)
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, byNode: nodeOf}
		return coreinformers.NewFilteredPodInformer(client, metav1.NamespaceAll, resync, indexers, func(options *metav1.ListOptions) {
			options.FieldSelector = running
		})
	})
	return factory
}

// nodeOf is the index function of byNode. A pod that has ended is passed over here too: not every source of pods knows
// field selectors.
func nodeOf(object interface{}) ([]string, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T is not a pod", object)
	}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil, nil
	}
	return []string{pod.Spec.NodeName}, nil
}

// newCluster watches with the informers of a factory made by newInformerFactory, once that is started.
func newCluster(factory informers.SharedInformerFactory) *cluster {
	nodes, pods := factory.Core().V1().Nodes(), factory.Core().V1().Pods()
	return &cluster{
		nodes:  nodes.Lister(),
		pods:   pods.Informer().GetIndexer(),
		synced: []cache.InformerSynced{nodes.Informer().HasSynced, pods.Informer().HasSynced},
	}
}

// hasSynced tells whether all that there is was seen once.
func (c *cluster) hasSynced() bool {
	for _, synced := range c.synced {
		if !synced() {
			return false
		}
	}
	return true
}

// node gives the node with a name, or nil if none is known.
func (c *cluster) node(name string) *corev1.Node {
	node, err := c.nodes.Get(name)
	if err != nil { // the only reason there is: not found
		return nil
	}
	return node
}

// nodeInfo describes a node, with the pods that are known to be on it, in the form that plugins read.
func (c *cluster) nodeInfo(node *corev1.Node) (*framework.NodeInfo, error) {
	pods, err := c.pods.ByIndex(byNode, node.Name)
	if err != nil {
		return nil, err
	}
	info := framework.NewNodeInfo()
	for _, pod := range pods {
		info.AddPod(pod.(*corev1.Pod))
	}
	info.SetNode(node)
	return info, nil
}

// others describes the nodes of the cluster whose names are not among some, in the order of their names.
func (c *cluster) others(than map[string]*framework.NodeInfo) ([]*framework.NodeInfo, error) {
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	var infos []*framework.NodeInfo
	for _, node := range nodes {
		if than[node.Name] != nil {
			continue
		}
		info, err := c.nodeInfo(node)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}
