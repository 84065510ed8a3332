// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Profiles: checking a blob against its model's table of parameters, and making a drive of it.
 *
 * The checks here are those that every model needs: known model, matching table, lists within the
 * blob, values in range. What a parameter means for others (zones that overlap, a seek curve that
 * never rises) is the model's own check(). Profiles nest one deep (an array of drives, but no array
 * of arrays), so nothing here recurses.
 */
#include "core/drive/profile.h"

#define EINVAL_ 22

const struct hw_drive_model *const hw_drive_models[] = {
	&hw_constant_model, &hw_disk_model, &hw_ssd_model, &hw_array_model,
	&hw_shaped_model,   &hw_smr_model,  NULL,
};

const struct hw_drive_model *hw_drive_model_find(const char *name, u32 *index)
{
	u32 i;

	for (i = 0; hw_drive_models[i]; i++) {
		if (hw_same_name(hw_drive_models[i]->name, name)) {
			if (index)
				*index = i;
			return hw_drive_models[i];
		}
	}
	return NULL;
}

static const struct hw_drive_model *model_of(const struct hw_profile *p)
{
	return hw_drive_models[p->model];
}

int hw_profile_bad(struct hw_profile_error *err, const char *key, s64 row, const char *column,
		   const char *what)
{
	err->key = key;
	err->row = row;
	err->column = column;
	err->what = what;
	err->bound = 0;
	err->scale = 0;
	return -EINVAL_;
}

static int out_of_range(struct hw_profile_error *err, const struct hw_param *list, s64 row,
			const struct hw_param *p, s64 v)
{
	hw_profile_bad(err, list ? list->key : p->key, row, list ? p->key : NULL,
		       v < p->min ? "must be at least" : "must be at most");
	err->bound = v < p->min ? p->min : p->max;
	err->scale = p->scale ? p->scale : 1;
	return -EINVAL_;
}

static s64 count_choices(const struct hw_param *p)
{
	s64 n = 0;

	while (p->choices[n])
		n++;
	return n;
}

static int check_scalar(const struct hw_param *list, s64 row, const struct hw_param *p, s64 v,
			struct hw_profile_error *err)
{
	s64 lo = p->min, hi = p->max;

	if (p->type == HW_PARAM_BOOL) {
		lo = 0;
		hi = 1;
	} else if (p->type == HW_PARAM_ENUM) {
		lo = 0;
		hi = count_choices(p) - 1;
	}
	if (v >= lo && v <= hi)
		return 0;
	if (p->type == HW_PARAM_NUMBER)
		return out_of_range(err, list, row, p, v);
	return hw_profile_bad(err, list ? list->key : p->key, row, list ? p->key : NULL,
			      "is not one of its choices");
}

static int check_list(const struct hw_profile *p, const struct hw_param *list, s64 at,
		      struct hw_profile_error *err)
{
	u32 cols = list->type == HW_PARAM_DRIVES ? 1 : list->nr_columns;
	const s64 *row;
	s64 rows, r;
	u32 c;
	int ret;

	if (at < (s64)p->params || at >= (s64)p->words)
		return hw_profile_bad(err, list->key, -1, NULL, "lies outside the profile");
	rows = p->value[at];
	if (rows < 0 || rows > (s64)p->words || rows * cols > (s64)p->words - at - 1)
		return hw_profile_bad(err, list->key, -1, NULL, "lies outside the profile");
	if (rows < list->min || rows > list->max) {
		hw_profile_bad(err, list->key, -1, NULL,
			       rows < list->min ? "must have a number of rows of at least" :
						  "must have a number of rows of at most");
		err->bound = rows < list->min ? list->min : list->max;
		err->scale = 1;
		return -EINVAL_;
	}
	if (list->type == HW_PARAM_DRIVES)
		return 0;
	row = &p->value[at + 1];
	for (r = 0; r < rows; r++, row += cols) {
		for (c = 0; c < cols; c++) {
			ret = check_scalar(list, r, &list->columns[c], row[c], err);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int check_one(const struct hw_profile *p, u64 words, bool nested,
		     struct hw_profile_error *err)
{
	const struct hw_drive_model *m;
	u32 i;
	int ret = 0;

	if (p->magic != HW_PROFILE_MAGIC)
		return hw_profile_bad(err, NULL, -1, NULL, "not a drive profile");
	for (i = 0; hw_drive_models[i] && i < p->model; i++)
		;
	m = hw_drive_models[i];
	if (!m)
		return hw_profile_bad(err, NULL, -1, NULL, "unknown drive model");
	if (p->params != m->nr_params || p->words < p->params || p->words > words)
		return hw_profile_bad(err, NULL, -1, NULL,
				      "truncated, or made for another version");
	for (i = 0; i < m->nr_params && !ret; i++) {
		const struct hw_param *param = &m->params[i];

		if (param->type == HW_PARAM_DRIVES && nested)
			return hw_profile_bad(err, param->key, -1, NULL,
					      "may not contain another array");
		if (param->type == HW_PARAM_LIST || param->type == HW_PARAM_DRIVES)
			ret = check_list(p, param, p->value[i], err);
		else
			ret = check_scalar(NULL, -1, param, p->value[i], err);
	}
	return ret;
}

int hw_profile_check(const struct hw_profile *p, size_t bytes, struct hw_profile_error *err)
{
	const struct hw_drive_model *m;
	u32 i;
	s64 k;
	int ret;

	if (bytes < sizeof(*p))
		return hw_profile_bad(err, NULL, -1, NULL, "not a drive profile");
	ret = check_one(p, (bytes - sizeof(*p)) / sizeof(s64), false, err);
	if (ret)
		return ret;
	m = model_of(p);
	for (i = 0; i < m->nr_params; i++) {
		const s64 *list = &p->value[p->value[i]];

		if (m->params[i].type != HW_PARAM_DRIVES)
			continue;
		for (k = 0; k < list[0]; k++) {
			const struct hw_profile *sub;
			s64 at = list[1 + k];

			if (at < (s64)p->params || at + 2 > (s64)p->words)
				return hw_profile_bad(err, m->params[i].key, k, NULL,
						      "lies outside the profile");
			sub = (const struct hw_profile *)&p->value[at];
			ret = check_one(sub, p->words - (u64)at - 2, true, err);
			if (!ret && model_of(sub)->check)
				ret = model_of(sub)->check(sub, err);
			if (ret)
				return ret;
		}
	}
	return m->check ? m->check(p, err) : 0;
}

size_t hw_drive_size(const struct hw_profile *p, u32 depth)
{
	return model_of(p)->size(p, depth);
}

struct hw_drive *hw_drive_create(void *mem, const struct hw_profile *p, u32 depth)
{
	struct hw_drive *d = mem;

	d->model = model_of(p);
	d->model->create(mem, p, depth);
	return d;
}

void hw_drive_describe(const struct hw_drive *d, struct hw_device *dev, s64 (*cells)[2])
{
	dev->sectors = d->sectors;
	dev->depth = d->depth;
	dev->rotational = d->rotational;
	dev->arms = d->arms;
	dev->positions.cells = cells[0];
	dev->positions.nr = d->model->positions ? d->model->positions(d, cells) : 0;
}

bool hw_drive_locate(const struct hw_drive *d, u64 lbn, struct hw_drive_place *out)
{
	return d->model->locate && lbn < d->sectors && d->model->locate(d, lbn, out);
}

s64 hw_profile_get(const struct hw_profile *p, const char *key, bool *found)
{
	const struct hw_drive_model *m = model_of(p);
	u32 i;

	for (i = 0; i < m->nr_params; i++) {
		if (hw_same_name(m->params[i].key, key)) {
			*found = true;
			return p->value[i];
		}
	}
	*found = false;
	return 0;
}
