// SPDX-License-Identifier: Apache-2.0

package input

import (
	"bufio"
	"context"
	"fmt"
	"runtime"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// bytesOfBatch is how much text is decoded in parallel.
const bytesOfBatch = 8 << 20

// clusterReader collects a cluster's objects.
type clusterReader struct {
	cluster Cluster
	seen    map[key]place
	// like is the last pod of an owner.
	like  map[types.UID]*v1.Pod
	batch []item
	bytes int
	files []string
}

// ReadCluster reads files, directories, and - for the standard input, with what kubectl get --output yaml or json
// prints, kube-scheduler-simulator's exports, and OpenB's list of nodes, also compressed with gzip. The error has type
// *Error.
func ReadCluster(paths []string) (*Cluster, error) {
	c := &clusterReader{seen: map[key]place{}, like: map[types.UID]*v1.Pod{}, cluster: Cluster{Ignored: map[string]int{},
		PodUse: map[string]v1.ResourceList{}, NodeUse: map[string]v1.ResourceList{},
		Later: map[types.UID]*laterfields.Found{}, EvictUnhealthy: map[string]bool{}}}
	if err := eachFile(paths, c.readFile); err != nil {
		return nil, err
	}
	if len(c.cluster.Nodes) == 0 {
		return nil, place{file: strings.Join(c.files, ", ")}.fail(saveBoth, "there are no nodes")
	}
	c.leaveOutOrphans()
	c.warnOfEmptyNodes()
	return &c.cluster, nil
}

// leaveOutOrphans drops the pods of nodes that are not in the input. In a cluster, such nodes were deleted a moment ago,
// no filter and no score counts their pods, and the garbage collector deletes them next.
func (c *clusterReader) leaveOutOrphans() {
	var kept, orphans []*v1.Pod
	for _, pod := range c.cluster.Pods {
		if _, known := c.seen[newKey("Node", "", pod.Spec.NodeName)]; pod.Spec.NodeName == "" || known {
			kept = append(kept, pod)
		} else {
			orphans = append(orphans, pod)
		}
	}
	if c.cluster.Pods = kept; len(orphans) > 0 {
		id := newKey("Pod", orphans[0].Namespace, orphans[0].Name)
		c.cluster.Warnings = append(c.cluster.Warnings, fmt.Sprintf("%v: %v is on node %s, which is not in the input; pods of such "+
			"nodes are left out, and no new pods replace them: %d", c.seen[id], id, orphans[0].Spec.NodeName, len(orphans)))
	}
}

// warnOfEmptyNodes adds a warning of nodes whose kubelet has not reported its resources yet.
func (c *clusterReader) warnOfEmptyNodes() {
	count, first := 0, key{}
	for _, node := range c.cluster.Nodes {
		if len(node.Status.Allocatable) > 0 {
			continue
		}
		if count++; count == 1 {
			first = newKey("Node", "", node.Name)
		}
	}
	if count > 0 {
		c.cluster.Warnings = append(c.cluster.Warnings, fmt.Sprintf("%v: %v has no status.allocatable, so no pod fits; nodes without it: %d",
			c.seen[first], first, count))
	}
}

func (c *clusterReader) readFile(name string, content *bufio.Reader) error {
	c.files = append(c.files, name)
	if startsWith(content, openBNodes) {
		return readOpenBNodes(name, content, c.add)
	}
	if strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".csv") {
		return place{name, 1}.fail("move it elsewhere, or pass it as a trace", "the header is not %s", openBNodes)
	}
	err := eachItem(name, content, c.enqueue)
	if earlier := c.flush(); earlier != nil {
		return earlier
	}
	return err
}

func (c *clusterReader) enqueue(i item) error {
	c.batch = append(c.batch, i)
	if c.bytes += len(i.text); c.bytes < bytesOfBatch {
		return nil
	}
	return c.flush()
}

// flush decodes the batch in parallel, and adds the objects in their order.
func (c *clusterReader) flush() error {
	objects := make([]decoded, len(c.batch))
	workqueue.ParallelizeUntil(context.Background(), runtime.GOMAXPROCS(0), len(objects), func(i int) {
		objects[i].place = c.batch[i].place
		objects[i].err = objects[i].decode(&c.batch[i])
	})
	c.batch, c.bytes = nil, 0
	for _, object := range objects {
		if err := c.add(object); err != nil {
			return err
		}
	}
	return nil
}

func (c *clusterReader) add(d decoded) error {
	if d.err != nil {
		return d.err
	}
	if d.object == nil && d.custom == nil && d.usage == nil {
		c.cluster.Ignored[d.kind.Kind]++
		return nil
	}
	if earlier, twice := c.seen[d.key]; twice {
		return d.fail("remove one of them, or read only one of the files", "%v is also at %v", d.key, earlier)
	}
	c.seen[d.key] = d.place
	if d.time.After(c.cluster.Taken) {
		c.cluster.Taken = d.time
	}
	if d.custom != nil {
		c.cluster.Custom = append(c.cluster.Custom, d.custom)
		return nil
	}
	switch object := d.object.(type) {
	case *v1.Node:
		c.cluster.Nodes = append(c.cluster.Nodes, object)
	case *v1.Pod:
		owner := types.UID("")
		if len(object.OwnerReferences) > 0 {
			owner = object.OwnerReferences[0].UID
		}
		if like := c.like[owner]; like != nil {
			share(object, like)
		}
		c.like[owner] = object
		if d.found != nil {
			c.cluster.Later[object.UID] = d.found
		}
		c.cluster.Pods = append(c.cluster.Pods, object)
	case nil:
		c.addUse(d.usage)
	default:
		if d.evictUnhealthy {
			c.cluster.EvictUnhealthy[d.namespace+"/"+d.name] = true
		}
		c.cluster.Objects = append(c.cluster.Objects, object)
	}
	return nil
}

// addUse adds what a node uses, or the sum of a pod's containers.
func (c *clusterReader) addUse(of *metrics) {
	if of.Namespace == "" {
		c.cluster.NodeUse[of.Name] = of.Usage
		return
	}
	sum := v1.ResourceList{}
	for _, container := range of.Containers {
		for name, quantity := range container.Usage {
			quantity.Add(sum[name])
			sum[name] = quantity
		}
	}
	c.cluster.PodUse[of.Namespace+"/"+of.Name] = sum
}
