// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/plugintest"
)

// counted is what runs, by image and by node.
type counted map[string]map[string]int32

func (c counted) add(image, node string) {
	if c[image] == nil {
		c[image] = map[string]int32{}
	}
	c[image][node]++
}

// content returns what an index holds, and checks that its parts agree with one another.
func (x *index) content(t *testing.T) counted {
	t.Helper()
	content, nodes := counted{}, map[*image]int{}
	for name, node := range x.nodes {
		for image, containers := range node {
			if containers <= 0 || x.images[image.name] != image {
				t.Fatalf("node %s has %d containers of %s, which is known as %v", name, containers, image.name, x.images[image.name])
			}
			if content[image.name] == nil {
				content[image.name] = map[string]int32{}
			}
			content[image.name][name] = containers
			nodes[image]++
		}
	}
	for name, image := range x.images {
		if nodes[image] != image.nodes || image.nodes == 0 {
			t.Fatalf("image %s is kept with %d nodes, want %d", name, image.nodes, nodes[image])
		}
	}
	return content
}

// world lets things happen in the scheduler's cache.
type world struct {
	*plugintest.Cluster
	random *rand.Rand
	pods   map[string]*v1.Pod
	nodes  map[string]*v1.Node
	events []string
}

func (w *world) one(of ...string) string {
	return of[w.random.Intn(len(of))]
}

func (w *world) state() v1.ContainerState {
	if w.random.Intn(4) == 0 {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
	}
	return v1.ContainerState{Running: &v1.ContainerStateRunning{}}
}

// pod makes a pod of up to three containers, some of which run, with images of which some are the same by other names.
func (w *world) pod(name, node string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	pod.Spec.NodeName = node
	pod.Status.Phase = v1.PodPhase(w.one("Pending", "Running", "Running", "Running", "Succeeded", "Failed"))
	for i := w.random.Intn(4); i > 0; i-- {
		name := fmt.Sprintf("c%d", i)
		image := w.one("a", "a:latest", "docker.io/library/a", "a@"+digestA, "b:1", "registry/c", "Wrong Name")
		status := v1.ContainerStatus{Name: name, State: w.state()}
		status.ImageID = w.one("", "docker-pullable://a@"+digestA, "docker.io/library/a@"+digestB, digestA)
		if w.random.Intn(5) == 0 {
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers,
				v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: name, Image: image}})
			pod.Status.EphemeralContainerStatuses = append(pod.Status.EphemeralContainerStatuses, status)
			continue
		}
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Image: image})
		pod.Status.ContainerStatuses = append([]v1.ContainerStatus{status}, pod.Status.ContainerStatuses...)
	}
	return pod
}

// step makes something happen.
func (w *world) step() {
	name := w.one("p1", "p2", "p3", "p4", "p5", "p6")
	switch pod := w.pods[name]; w.random.Intn(8) {
	case 0, 1, 2, 3:
		if pod == nil {
			w.pods[name] = w.pod(name, w.one("n1", "n2", "n3", "gone"))
			w.Must(w.AddPod(w.pods[name]))
		} else {
			w.pods[name] = w.pod(name, pod.Spec.NodeName)
			w.Must(w.UpdatePod(pod, w.pods[name]))
		}
		w.events = append(w.events, fmt.Sprintf("pod %s is on %q, %s", name, w.pods[name].Spec.NodeName, w.pods[name].Status.Phase))
	case 4:
		if pod != nil {
			delete(w.pods, name)
			w.Must(w.RemovePod(pod))
			w.events = append(w.events, fmt.Sprintf("pod %s is deleted", name))
		}
	case 5, 6:
		node := nodeOf(w.one("n1", "n2", "n3"), nil)
		if old := w.nodes[node.Name]; old != nil {
			w.UpdateNode(old, node)
		} else {
			w.AddNode(node)
		}
		w.nodes[node.Name] = node
		w.events = append(w.events, "node "+node.Name)
	case 7:
		name := w.one("n1", "n2", "n3")
		if node := w.nodes[name]; node != nil {
			delete(w.nodes, name)
			w.Must(w.RemoveNode(node))
			w.events = append(w.events, "node "+name+" is deleted")
		}
	}
}

// recount counts what the world runs on nodes that exist, in the plainest way.
func (w *world) recount() counted {
	running := counted{}
	for _, pod := range w.pods {
		if w.nodes[pod.Spec.NodeName] == nil {
			continue
		}
		for _, status := range append(append([]v1.ContainerStatus{}, pod.Status.ContainerStatuses...), pod.Status.EphemeralContainerStatuses...) {
			if pod.Status.Phase != v1.PodRunning || status.State.Running == nil {
				continue
			}
			names := map[string]bool{}
			for _, container := range pod.Spec.Containers {
				if container.Name == status.Name {
					names[writtenAs[container.Image]] = true
				}
			}
			for _, container := range pod.Spec.EphemeralContainers {
				if container.Name == status.Name {
					names[writtenAs[container.Image]] = true
				}
			}
			names[reportedAs[status.ImageID]] = true
			delete(names, "")
			for name := range names {
				running.add(name, pod.Spec.NodeName)
			}
		}
	}
	return running
}

var (
	writtenAs = map[string]string{
		"a": "docker.io/library/a:latest", "a:latest": "docker.io/library/a:latest", "docker.io/library/a": "docker.io/library/a:latest",
		"a@" + digestA: "docker.io/library/a@" + digestA, "b:1": "docker.io/library/b:1", "registry/c": "docker.io/registry/c:latest",
		"docker.io/library/a@" + digestA: "docker.io/library/a@" + digestA,
	}
	reportedAs = map[string]string{
		"docker-pullable://a@" + digestA: "docker.io/library/a@" + digestA,
		"docker.io/library/a@" + digestB: "docker.io/library/a@" + digestB,
	}
)

// TestIndex lets random things happen, none to some of them between two looks, and compares the index with a
// count of everything.
func TestIndex(t *testing.T) {
	for seed := int64(0); seed < 20; seed++ {
		w := &world{Cluster: plugintest.NewCluster(t), random: rand.New(rand.NewSource(seed)), pods: map[string]*v1.Pod{}, nodes: map[string]*v1.Node{}}
		x := newIndex(newNames(), false)
		look := func() {
			t.Helper()
			w.Must(x.follower.Follow(w, x))
			if want, got := w.recount(), x.content(t); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, after %q: the index holds\n%v\nwant\n%v", seed, w.events, got, want)
			}
			if len(x.nodes) != len(w.nodes) {
				t.Fatalf("seed %d, after %q: %d nodes are kept, want %d", seed, w.events, len(x.nodes), len(w.nodes))
			}
			w.events = nil
		}
		for step := 0; step < 500; step++ {
			w.step()
			if w.random.Intn(2) == 0 {
				look()
			}
		}
		for _, pod := range w.pods {
			w.Must(w.RemovePod(pod))
		}
		w.pods = nil
		look()
		if len(x.images) > 0 {
			t.Errorf("seed %d: when nothing runs, the index holds %d images", seed, len(x.images))
		}
	}
}
