// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"net/http"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	clientsetfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

// served is a plugin that uses all services.
type served struct {
	framework.FilterPlugin
	move func(framework.ClusterEvent)
}

func (s *served) Name() string                                  { return "Served" }
func (s *served) SetPodMover(move func(framework.ClusterEvent)) { s.move = move }
func (s *served) Pages() map[string]http.Handler {
	return map[string]http.Handler{"/served": http.NotFoundHandler()}
}
func (s *served) EventsToRegister() []framework.ClusterEvent {
	return []framework.ClusterEvent{{Resource: framework.Node, ActionType: framework.UpdateNodeCondition}}
}

// TestPluginServices makes a plugin move a pod that it rejected. The queue's goroutines, which move pods, do not run.
func TestPluginServices(t *testing.T) {
	plugin, client := &served{}, clientsetfake.NewSimpleClientset()
	registry := frameworkruntime.Registry{"Served": func(apiruntime.Object, framework.Handle) (framework.Plugin, error) { return plugin, nil }}
	enabled := func(name string) schedulerapi.PluginSet {
		return schedulerapi.PluginSet{Enabled: []schedulerapi.Plugin{{Name: name}}}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sched, err := New(client, informers.NewSharedInformerFactory(client, 0), nil,
		profile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})), ctx.Done(),
		WithProfiles(schedulerapi.KubeSchedulerProfile{SchedulerName: "a", Plugins: &schedulerapi.Plugins{
			QueueSort: enabled("PrioritySort"), Filter: enabled("Served"), Bind: enabled("DefaultBinder"),
		}}), WithFrameworkOutOfTreeRegistry(registry), WithPodInitialBackoffSeconds(0))
	if err != nil {
		t.Fatal(err)
	}
	defer sched.SchedulingQueue.Close()
	if sched.Plugins.Pages()["/served"] == nil {
		t.Error("the plugin's page is missing")
	}
	if plugin.move == nil {
		t.Fatal("the plugin has no function that moves pods")
	}
	if err := sched.SchedulingQueue.Add(st.MakePod().Name("pod").UID("pod").Obj()); err != nil {
		t.Fatal(err)
	}
	rejected, err := sched.SchedulingQueue.Pop()
	if err != nil {
		t.Fatal(err)
	}
	rejected.UnschedulablePlugins = sets.NewString("Served")
	if err := sched.SchedulingQueue.AddUnschedulableIfNotPresent(rejected, sched.SchedulingQueue.SchedulingCycle()); err != nil {
		t.Fatal(err)
	}
	plugin.move(framework.ClusterEvent{Resource: framework.Node, ActionType: framework.UpdateNodeCondition, Label: "Test"})
	moved := make(chan struct{})
	go func() {
		if _, err := sched.SchedulingQueue.Pop(); err == nil {
			close(moved)
		}
	}()
	select {
	case <-moved:
	case <-time.After(30 * time.Second):
		t.Fatal("the plugin did not move the pod")
	}
}
