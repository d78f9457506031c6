/* The plan: which route, on which device and stream, after which other streams. */
#include <fenv.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "base/fpenv.h"
#include "base/overlap.h"
#include "check.h"
#include "choose/plan.h"

static float x[64], y[64], z[64];

static struct operand
host_operand(void *data, size_t size, enum dtype dtype)
{
    return (struct operand){
        .data = data, .size = size, .dtype = dtype, .place = PLACE_HOST, .device = -1, .writable = 1};
}

static struct operand
device_operand(void *data, int device)
{
    struct operand operand = host_operand(data, 64, DTYPE_FLOAT32);
    operand.place = PLACE_DEVICE;
    operand.device = device;
    return operand;
}

static struct operand
streamed_operand(void *data, void *stream)
{
    struct operand operand = device_operand(data, 0);
    operand.has_stream = true;
    operand.stream = stream;
    return operand;
}

static int
make(struct plan *plan, const struct operand *a, const struct operand *b, const struct operand *out,
     const struct plan_request *request, struct status *status)
{
    if (a->place == PLACE_DEVICE)
        return plan_make(plan, NULL, (const struct operand *const[]){a, b, out}, request, status);
    const struct dtype_row *row = &dtype_table[a->dtype];
    const struct batch_add add = {a->data, b->data, out->data, a->size * row->components, row->component};
    return plan_host_run(plan, &add, request, status);
}

static const struct plan_request plainly = {.device = -1};

static struct plan
planned(const struct operand *a, const struct operand *b, const struct operand *out, const struct plan_request *request)
{
    struct plan plan = {.n = 12345};
    struct status status;
    CHECK(make(&plan, a, b, out, request, &status) == 0, "%s", status.text);
    return plan;
}

static void
host_operands_are_added_on_the_host(void)
{
    const struct operand a = host_operand(x, 64, DTYPE_FLOAT32), b = host_operand(y, 64, DTYPE_FLOAT32);
    const struct operand out = host_operand(z, 64, DTYPE_FLOAT32);
    const struct plan plan = planned(&a, &b, &out, &plainly);
    unsigned flags = 77;
    struct status status;
    for (int i = 0; i < 64; i++) {
        x[i] = (float)i;
        y[i] = 0.5f;
    }
    CHECK(plan.route == ROUTE_HOST && strcmp(route_name[plan.route], "host") == 0);
    CHECK(plan.component == COMPONENT_F32 && plan.n == 64 && plan.device == -1 && plan.schedule.threads == 1);
    CHECK(plan_run(&plan, &flags, &status) == 0 && flags == 0);
    for (int i = 0; i < 64; i++)
        CHECK(z[i] == (float)i + 0.5f, "element %d", i);
}

static bool
is_near(double seconds, double expected)
{
    return seconds > 0.999 * expected && seconds < 1.001 * expected;
}

/* The arrays are 1e8 float32, whose measured times are beside the constants in choose/plan.c. */
static void
the_formula_predicts_each_route(void)
{
    static const struct {
        int threads;
        double link, host, transfer, hybrid; /* in milliseconds; the link in GB/s */
        bool ahead;
    } cases[] = {
        {1, 63, 100, 14.5455, 12.6984, true},     {4, 63, 25, 14.5455, 9.1954, true},
        {12, 63, 8.3333, 14.5455, 5.2980, true},  {13, 63, 7.7419, 14.5455, 5.0526, true},
        {256, 63, 7.7419, 14.5455, 5.0526, true}, {4, 0, 25, 29.0909, 13.4454, true}, /* the link is not known */
        {16, 3.7, 7.7419, 247.666, 7.5072, true}, {16, 3.6, 7.7419, 254.545, 7.5134, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double seconds[ROUTE_DEVICE];
        CHECK(routes_predict(400000000, cases[i].threads, 1e9 * cases[i].link, seconds) == cases[i].ahead, "%zu", i);
        CHECK(is_near(1e3 * seconds[ROUTE_HOST], cases[i].host), "%zu: %g", i, seconds[ROUTE_HOST]);
        CHECK(is_near(1e3 * seconds[ROUTE_TRANSFER], cases[i].transfer), "%zu: %g", i, seconds[ROUTE_TRANSFER]);
        CHECK(is_near(1e3 * seconds[ROUTE_HYBRID], cases[i].hybrid), "%zu: %g", i, seconds[ROUTE_HYBRID]);
    }
}

static void
flags_come_out_of_the_run(void)
{
    const struct operand a = host_operand(x, 1, DTYPE_FLOAT32), out = host_operand(z, 1, DTYPE_FLOAT32);
    const struct plan plan = planned(&a, &a, &out, &plainly);
    unsigned flags = 0;
    struct status status;
    x[0] = 3e38f;
    CHECK(plan_run(&plan, &flags, &status) == 0 && flags == FP_OVERFLOW);
}

static void
a_complex_number_is_two_components(void)
{
    const struct operand a = host_operand(x, 32, DTYPE_COMPLEX64), out = host_operand(z, 32, DTYPE_COMPLEX64);
    const struct plan plan = planned(&a, &a, &out, &plainly);
    CHECK(plan.component == COMPONENT_F32 && plan.n == 64);
}

static void
no_elements_need_no_memory(void)
{
    const struct operand none = host_operand(NULL, 0, DTYPE_INT16);
    const struct plan plan = planned(&none, &none, &none, &plainly);
    unsigned flags = 77;
    struct status status;
    CHECK(plan.route == ROUTE_HOST && plan.n == 0);
    CHECK(plan_run(&plan, &flags, &status) == 0 && flags == 0);
}

static void
an_unknown_simd_level_fails_the_plan(void)
{
    const struct operand a = host_operand(x, 64, DTYPE_FLOAT32);
    struct plan plan;
    struct status status = {0};
    setenv("VECADD_SIMD", "mmx", 1);
    CHECK(make(&plan, &a, &a, &a, &plainly, &status) == -1 && status.code == STATUS_VALUE);
}

static void
host_operands_go_through_the_gpu_on_request(void)
{
    const struct operand a = host_operand(x, 64, DTYPE_FLOAT32), out = host_operand(z, 64, DTYPE_FLOAT32);
    const struct plan_request request = {.on_device = true, .device = 3};
    const struct plan plan = planned(&a, &a, &out, &request);
    CHECK(plan.route == ROUTE_TRANSFER && plan.device == 3);
}

static void
an_unusual_rounding_keeps_them_on_the_host(void)
{
    const struct operand a = host_operand(x, 64, DTYPE_FLOAT32), out = host_operand(z, 64, DTYPE_FLOAT32);
    const struct plan_request request = {.on_device = true, .device = 0};
    fesetround(FE_UPWARD);
    CHECK(planned(&a, &a, &out, &request).route == ROUTE_HOST);
    fesetround(FE_TONEAREST);
    CHECK(planned(&a, &a, &out, &request).route == ROUTE_TRANSFER);
}

static void
device_operands_run_on_their_device_and_the_legacy_stream(void)
{
    const struct operand a = device_operand(x, 1), b = device_operand(y, 1), out = device_operand(z, 1);
    const struct plan plan = planned(&a, &b, &out, &plainly);
    CHECK(plan.route == ROUTE_DEVICE && plan.device == 1 && plan.stream == NULL && plan.joins == 0);
    CHECK(plan.a == x && plan.b == y && plan.c == z && plan.n == 64);
}

static void
the_first_operand_with_a_stream_gives_it(void)
{
    cudaStream_t s, t; /* which are asked whether they capture */
    CHECK(cudaStreamCreate(&s) == cudaSuccess && cudaStreamCreate(&t) == cudaSuccess);
    const struct operand a = device_operand(x, 0), b = streamed_operand(y, s), out = streamed_operand(z, t);
    const struct plan plan = planned(&a, &b, &out, &plainly);
    CHECK(plan.stream == s && plan.joins == 1 && plan.join[0] == t);
    cudaStreamDestroy(s);
    cudaStreamDestroy(t);
}

static void
the_requested_stream_joins_all_others(void)
{
    int r, s, t;
    const struct operand a = streamed_operand(x, &s), b = streamed_operand(y, &t), out = streamed_operand(z, NULL);
    const struct plan_request request = {.device = -1, .has_stream = true, .stream = &r};
    const struct plan plan = planned(&a, &b, &out, &request);
    CHECK(plan.stream == &r && plan.joins == 3);
    CHECK(plan.join[0] == &s && plan.join[1] == &t && plan.join[2] == NULL);
}

static void
a_stream_is_joined_once_and_never_to_itself(void)
{
    int r, s;
    const struct operand a = streamed_operand(x, &s), b = streamed_operand(y, &s), out = streamed_operand(z, &r);
    const struct plan_request request = {.device = -1, .has_stream = true, .stream = &r};
    const struct plan plan = planned(&a, &b, &out, &request);
    CHECK(plan.stream == &r && plan.joins == 1 && plan.join[0] == &s);
    const struct plan alone = planned(&a, &b, &a, &plainly);
    CHECK(alone.stream == &s && alone.joins == 0);
}

static void
the_legacy_stream_may_be_asked_for(void)
{
    int s;
    const struct operand a = streamed_operand(x, &s);
    const struct plan_request request = {.device = -1, .has_stream = true, .stream = NULL};
    const struct plan plan = planned(&a, &a, &a, &request);
    CHECK(plan.stream == NULL && plan.joins == 1 && plan.join[0] == &s);
}

static void
two_devices_are_refused(void)
{
    const struct operand a = device_operand(x, 0), b = device_operand(y, 1);
    struct plan plan;
    struct status status = {0};
    CHECK(make(&plan, &a, &b, &a, &plainly, &status) == -1 && status.code == STATUS_VALUE);
    CHECK(strstr(status.text, "cuda:0") && strstr(status.text, "b on cuda:1"), "%s", status.text);
}

static void
another_device_than_the_operands_is_refused(void)
{
    const struct operand a = device_operand(x, 0);
    const struct plan_request other = {.on_device = true, .device = 1}, current = {.on_device = true, .device = -1};
    struct plan plan;
    struct status status = {0};
    CHECK(make(&plan, &a, &a, &a, &other, &status) == -1 && status.code == STATUS_VALUE);
    CHECK(planned(&a, &a, &a, &current).device == 0);
}

static void
overlap_is_partial_between_none_and_all(void)
{
    CHECK(!overlaps_in_part(x, x, 16));
    CHECK(overlaps_in_part(x, x + 1, 16) && overlaps_in_part(x + 1, x, 16));
    CHECK(overlaps_in_part(x, x + 3, 16) && overlaps_in_part(x + 3, x, 16));
    CHECK(!overlaps_in_part(x, x + 4, 16) && !overlaps_in_part(x + 4, x, 16));
    CHECK(!overlaps_in_part(x, x + 1, 0));
}

int
main(void)
{
    RUN(host_operands_are_added_on_the_host);
    RUN(the_formula_predicts_each_route);
    RUN(flags_come_out_of_the_run);
    RUN(a_complex_number_is_two_components);
    RUN(no_elements_need_no_memory);
    RUN(an_unknown_simd_level_fails_the_plan);
    RUN(host_operands_go_through_the_gpu_on_request);
    RUN(an_unusual_rounding_keeps_them_on_the_host);
    RUN(device_operands_run_on_their_device_and_the_legacy_stream);
    RUN(the_first_operand_with_a_stream_gives_it);
    RUN(the_requested_stream_joins_all_others);
    RUN(a_stream_is_joined_once_and_never_to_itself);
    RUN(the_legacy_stream_may_be_asked_for);
    RUN(two_devices_are_refused);
    RUN(another_device_than_the_operands_is_refused);
    RUN(overlap_is_partial_between_none_and_all);
    return check_report();
}
