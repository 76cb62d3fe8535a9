package myscoreplugin

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes/fake"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
)

func TestScore(t *testing.T) {
	tests := []struct {
		name      string
		value     string
		preferred []string
		want      int64
	}{
		{name: "the only preferred value: 100 × (1-0)/1", value: "ssd", preferred: []string{"ssd"}, want: 100},
		{name: "first of three: 100 × (3-0)/3", value: "nvme", preferred: []string{"nvme", "ssd", "hdd"}, want: 100},
		{name: "second of three: 100 × (3-1)/3 = 66.67, rounded down", value: "ssd", preferred: []string{"nvme", "ssd", "hdd"}, want: 66},
		{name: "last of three: 100 × (3-2)/3 = 33.33, rounded down", value: "hdd", preferred: []string{"nvme", "ssd", "hdd"}, want: 33},
		{name: "a value that is not listed", value: "tape", preferred: []string{"nvme", "ssd", "hdd"}, want: 0},
		{name: "an empty value that is not listed", value: "", preferred: []string{"ssd"}, want: 0},
		{name: "an empty value that is listed", value: "", preferred: []string{"ssd", ""}, want: 50},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := score(tt.value, tt.preferred); got != tt.want {
				t.Errorf("score(%q, %q) = %d, want %d", tt.value, tt.preferred, got, tt.want)
			}
		})
	}
}

// newPlugin makes the plugin as the scheduler does, with a snapshot of the given nodes.
func newPlugin(t *testing.T, args runtime.Object, nodes ...*v1.Node) (framework.Plugin, error) {
	t.Helper()
	handle, err := frameworkruntime.NewFramework(nil, &schedulerconfig.KubeSchedulerProfile{SchedulerName: "my-scheduler"},
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(nil, nodes)),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(clientset.NewSimpleClientset(), 0)))
	if err != nil {
		t.Fatal(err)
	}
	return New(args, handle)
}

func TestFilterAndScoreByNode(t *testing.T) {
	nodes := []*v1.Node{
		st.MakeNode().Name("fast").Label("disktype", "ssd").Obj(),
		st.MakeNode().Name("slow").Label("disktype", "hdd").Obj(),
		st.MakeNode().Name("unlabelled").Obj(),
	}
	plugin, err := newPlugin(t, &config.MyScorePluginArgs{NodeLabel: "disktype", PreferredValues: []string{"ssd"}}, nodes...)
	if err != nil {
		t.Fatal(err)
	}
	pod := st.MakePod().Name("pod").Obj()

	wantCodes := map[string]framework.Code{
		"fast":       framework.Success,
		"slow":       framework.Success,
		"unlabelled": framework.UnschedulableAndUnresolvable,
	}
	for _, node := range nodes {
		nodeInfo := framework.NewNodeInfo()
		nodeInfo.SetNode(node)
		status := plugin.(framework.FilterPlugin).Filter(context.Background(), framework.NewCycleState(), pod, nodeInfo)
		if status.Code() != wantCodes[node.Name] {
			t.Errorf("Filter(%s) = %v %q, want %v", node.Name, status.Code(), status.Message(), wantCodes[node.Name])
		}
		if !status.IsSuccess() && !strings.Contains(status.Message(), `"disktype"`) {
			t.Errorf("Filter(%s) says %q, which does not name the label", node.Name, status.Message())
		}
	}

	for name, want := range map[string]int64{"fast": 100, "slow": 0} {
		got, status := plugin.(framework.ScorePlugin).Score(context.Background(), framework.NewCycleState(), pod, name)
		if !status.IsSuccess() || got != want {
			t.Errorf("Score(%s) = %d, %v, want %d", name, got, status, want)
		}
	}
	if _, status := plugin.(framework.ScorePlugin).Score(context.Background(), framework.NewCycleState(), pod, "gone"); status.Code() != framework.Error {
		t.Errorf("Score of a node that is not in the snapshot = %v, want an error", status)
	}
}

func TestNewRefusesBadArgs(t *testing.T) {
	tests := []struct {
		name string
		args runtime.Object
		want []string
	}{
		{name: "no args", args: nil, want: []string{"MyScorePluginArgs"}},
		{name: "another plugin's args", args: &schedulerconfig.NodeAffinityArgs{}, want: []string{"NodeAffinityArgs"}},
		{
			name: "every error at once, with the field's path",
			args: &config.MyScorePluginArgs{NodeLabel: "no label/key", PreferredValues: []string{"ssd", "a b", "ssd"}},
			want: []string{"args.nodeLabel", "args.preferredValues[1]", "args.preferredValues[2]: Duplicate value"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := newPlugin(t, tt.args)
			if err == nil {
				t.Fatal("New accepted the args")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error %q does not contain %q", err, want)
				}
			}
		})
	}
}
